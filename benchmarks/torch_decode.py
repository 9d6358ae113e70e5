"""Greedy and beam search as a good PyTorch program does them, for the model of ``torch_model.py``.

Sentences are sorted by length and translated in batches, in inference mode, with
``scaled_dot_product_attention`` over keys and values that are kept in memory set aside once. What
is done leaves the batch, and the hypotheses of a beam share the keys and values of their source.
The searches are defined as in ``minitransformer/decoding``, so that both sides say the same.

``B`` sentences, ``W`` hypotheses of each, ``H`` heads, ``T`` target length, ``K`` head width.
"""

import math

import torch
from torch.nn import functional as F
from torch_model import split_heads

PAD, BOS, EOS = 0, 2, 3
NEVER_SAID = [PAD, BOS]
NONE = -math.inf


@torch.inference_mode()
def translate(model, sources, search, *, max_tokens, **options):
    """What ``search`` finds for each source, in their order.

    Args:
        model: a TorchTransformer.
        sources: lists of ids, each with its end symbol.
        search: :func:`greedy`, :func:`recomputing_greedy` or :func:`beam_search`.
        max_tokens: most padded source tokens in a batch.
        options: of the search.

    Returns:
        Lists of ids, the end symbol included if it was reached.
    """
    found = [None] * len(sources)
    longest_first = sorted(range(len(sources)), key=lambda i: -len(sources[i]))
    while longest_first:
        length = len(sources[longest_first[0]])
        count = max(1, max_tokens // length)
        batch, longest_first = longest_first[:count], longest_first[count:]
        padded = [sources[i] + [PAD] * (length - len(sources[i])) for i in batch]
        source = torch.tensor(padded, device=model.positions.device)  # (B, S)
        limits = (2 * (source != PAD).sum(dim=1) + 10).clamp(max=model.config.max_length)
        for i, ids in zip(batch, search(model, source, limits, **options).tolist(), strict=True):
            found[i] = [token for token in ids if token != PAD]
    return found


def greedy(model, source, limits):
    """Ids (B, T), padding wherever nothing is said."""
    decoder = CachedDecoder(model, source, int(limits.max()))
    said = source.new_full((len(source), int(limits.max())), PAD)
    rows = torch.arange(len(source), device=source.device)
    token = source.new_full((len(source),), BOS)
    for t in range(said.shape[1]):
        logits = decoder.step(token[:, None])[:, 0]
        logits[:, NEVER_SAID] = NONE
        token = logits.argmax(dim=-1)
        said[rows, t] = token
        going = ((token != EOS) & (limits[rows] > t + 1)).nonzero()[:, 0]
        if not len(going):
            break
        if len(going) < len(rows):
            rows, token = rows[going], token[going]
            decoder.keep(going)
    return said


def recomputing_greedy(model, source, limits):
    """As :func:`greedy`, running the decoder over all that was said in each step."""
    mask = model.source_mask(source)
    memory = model.encode(source, mask)
    said = source.new_full((len(source), int(limits.max())), PAD)
    rows = torch.arange(len(source), device=source.device)
    target = source.new_full((len(source), 1), BOS)
    for t in range(said.shape[1]):
        x = model.embed(target)
        for layer in model.decoder:
            x = layer(x, memory, mask)
        logits = F.linear(model.decoder_norm(x[:, -1]), model.embedding.weight)
        logits[:, NEVER_SAID] = NONE
        token = logits.argmax(dim=-1)
        said[rows, t] = token
        target = torch.cat([target, token[:, None]], dim=1)
        going = ((token != EOS) & (limits[rows] > t + 1)).nonzero()[:, 0]
        if not len(going):
            break
        if len(going) < len(rows):
            rows, target, memory, mask = rows[going], target[going], memory[going], mask[going]
    return said


def beam_search(model, source, limits, beam_size, alpha):
    """Ids (B, T) of the best hypothesis by score, padding wherever nothing is said."""
    steps = int(limits.max())
    decoder = CachedDecoder(model, source, steps, beam_size)
    best = source.new_full((len(source), steps), PAD)
    best_score = torch.full((len(source),), NONE, device=source.device)
    rows = torch.arange(len(source), device=source.device)
    token = source.new_full((len(source), 1), BOS)
    total = torch.zeros(token.shape, device=source.device)
    said = source.new_full((len(source), 1, steps), PAD)  # (B, W, T)
    for t in range(steps):
        log_p = F.log_softmax(decoder.step(token), dim=-1)  # (B, W, V)
        log_p[..., NEVER_SAID] = NONE
        total, chosen = (total[..., None] + log_p).flatten(1).topk(beam_size)  # (B, k)
        parent, token = chosen // log_p.shape[-1], chosen % log_p.shape[-1]
        said = said.gather(1, parent[..., None].expand(-1, -1, steps))
        said[..., t] = token
        decoder.select(parent)

        at_end, at_limit = token == EOS, limits[rows] == t + 1
        counts = at_end | (at_limit & (best_score[rows] == NONE) & ~at_end.any(dim=1))[:, None]
        score, slot = (total / penalty(t + 1, alpha)).masked_fill(~counts, NONE).max(dim=1)
        better = (score > best_score[rows]).nonzero()[:, 0]
        best[rows[better]] = said[better, slot[better]]
        best_score[rows[better]] = score[better]

        total = total.masked_fill(at_end, NONE)
        reachable = total.max(dim=1).values / penalty(limits[rows], alpha)
        going = (~at_limit & (reachable > best_score[rows])).nonzero()[:, 0]
        if not len(going):
            break
        if len(going) < len(rows):
            rows, token, total, said = rows[going], token[going], total[going], said[going]
            decoder.keep(going)
    return best


def penalty(length, alpha):
    return ((5 + length) / 6) ** alpha


class CachedDecoder:
    """The decoder one position at a time, over keys and values kept from the positions before.

    Args:
        model: a TorchTransformer.
        source: ids (B, S).
        steps: the most there will be.
        width: the most hypotheses of a sentence.
    """

    def __init__(self, model, source, steps, width=1):
        self.model, self.length = model, 0
        self.mask = model.source_mask(source)
        memory = model.encode(source, self.mask)
        num_heads = model.config.num_heads
        self.memories = [
            [
                split_heads(x, num_heads).contiguous()
                for x in layer.cross_attention.key_value(memory).chunk(2, dim=-1)
            ]
            for layer in model.decoder
        ]  # (B, H, S, K) each
        shape = len(source), width, num_heads, steps, model.config.d_model // num_heads
        self.caches = [(memory.new_empty(shape), memory.new_empty(shape)) for _ in model.decoder]

    def step(self, ids):
        """Logits (B, W, V) from the last token of each hypothesis, (B, W)."""
        model = self.model
        x = model.embedding(ids) * math.sqrt(model.config.d_model) + model.positions[self.length]
        self.length += 1
        for layer, cache, memory in zip(model.decoder, self.caches, self.memories, strict=True):
            x = layer.self_attention_residual(
                x, lambda h, layer=layer, cache=cache: self._look_back(layer, h, cache)
            )
            x = layer.cross_attention_residual(
                x, lambda h, layer=layer, memory=memory: self._look_at_source(layer, h, memory)
            )
            x = layer.feed_forward_residual(x, layer.feed_forward)
        return F.linear(model.decoder_norm(x), model.embedding.weight)

    def _look_back(self, layer, h, cache):
        attention, width = layer.self_attention, h.shape[1]
        query, *new = (
            x.unflatten(-1, (attention.num_heads, 1, -1))  # (B, W, H, 1, K)
            for x in attention.query_key_value(h).chunk(3, dim=-1)
        )
        for kept, x in zip(cache, new, strict=True):
            kept[:, :width, :, self.length - 1] = x[..., 0, :]
        key, value = (kept[:, :width, :, : self.length].flatten(0, 1) for kept in cache)
        heads = F.scaled_dot_product_attention(query.flatten(0, 1), key, value)  # (B W, H, 1, K)
        return attention.output(heads.view(h.shape))

    def _look_at_source(self, layer, h, memory):
        attention = layer.cross_attention
        query = split_heads(attention.query(h), attention.num_heads)  # (B, H, W, K)
        heads = F.scaled_dot_product_attention(query, *memory, attn_mask=self.mask)
        return attention.output(heads.transpose(1, 2).flatten(2))

    def select(self, parents):
        """Make hypothesis w of sentence n the one that was ``parents[n, w]``."""
        sentence = torch.arange(len(parents), device=parents.device)[:, None]
        width = parents.shape[1]
        for cache in self.caches:
            for kept in cache:
                chosen = kept[:, :, :, : self.length][sentence, parents]
                kept[:, :width, :, : self.length] = chosen

    def keep(self, sentences):
        """Go on with some sentences only."""
        self.mask = self.mask[sentences]
        self.memories = [[x[sentences] for x in memory] for memory in self.memories]
        for i, cache in enumerate(self.caches):
            for kept in cache:
                kept[: len(sentences), :, :, : self.length] = kept[sentences, :, :, : self.length]
            self.caches[i] = tuple(kept[: len(sentences)] for kept in cache)
