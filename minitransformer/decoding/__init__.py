"""What follows what was given: greedy and beam search over what a model keeps of a prefix.

    hypotheses = translate_ids(model, sources, beam_size=5)

``N`` sentences still being translated, ``W`` hypotheses of each (the width of the beam), ``S``
source length, ``T`` target length, ``D`` d_model, ``H`` heads, ``K`` head width, ``V`` vocabulary.
"""

from minitransformer.decoding.attention import cross_attention
from minitransformer.decoding.beam import beam_search
from minitransformer.decoding.greedy import greedy
from minitransformer.decoding.hypothesis import Hypothesis, length_penalty
from minitransformer.decoding.incremental import IncrementalDecoder
from minitransformer.decoding.translate import translate_ids

__all__ = [
    "Hypothesis",
    "IncrementalDecoder",
    "beam_search",
    "cross_attention",
    "greedy",
    "length_penalty",
    "translate_ids",
]
