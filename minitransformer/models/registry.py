"""The kinds of models by the names that recipes and run folders give them.

A kind is the class of its models, which names that of their configurations. It is imported when
somebody asks for that kind.
"""

from minitransformer.core.errors import require_one_of
from minitransformer.core.libraries import imported

DEFAULT = "transformer"  # where a recipe or a run of an older release says nothing

KINDS = {
    "transformer": "minitransformer.models.transformer:Transformer",
    "restricted": "minitransformer.models.restricted_transformer:RestrictedTransformer",
    "convolution": "minitransformer.models.convolutional_translator:ConvolutionalTranslator",
    "recurrent": "minitransformer.models.recurrent_translator:RecurrentTranslator",
    "language-model": "minitransformer.models.language_model:LanguageModel",
    "masked-language-model": "minitransformer.models.masked_language_model:MaskedLanguageModel",
    "tagger": "minitransformer.models.tagger:Tagger",
    "small-network": "minitransformer.models.small_network:SmallNetwork",
    "alexnet": "minitransformer.models.alexnet:AlexNet",
    "residual-network": "minitransformer.models.residual_network:ResidualNetwork",
    "vision-transformer": "minitransformer.models.vision_transformer:VisionTransformer",
}


def config_class(kind):
    """The class of the configurations of that kind, a dataclass that is a ModelConfig.

    Raises:
        ValueError: there is no such kind.
    """
    return _model_class(kind).Config


def config_of(fields):
    """The configuration that :meth:`ModelConfig.as_dict` gave as a dict.

    Raises:
        ValueError, TypeError: there is no such kind, or it has other fields.
    """
    fields = dict(fields)
    return config_class(fields.pop("kind", DEFAULT))(**fields)


def new_model(config, seed=0, **options):
    """A new model of the configuration's kind; arguments as for :class:`Model`."""
    return _model_class(config.kind)(config, seed, **options)


def _model_class(kind):
    require_one_of(KINDS, "kind", kind)
    return imported(KINDS[kind])
