"""A learner's encoder and decoder layer in the places of the package's Modules.

The learner's are pairs over explicit parameters, in groups: those of an attention, of a LayerNorm,
of a feed-forward network. A Module owns its parameters, and its backward adds to their gradients.
"""

from minitransformer.core.backend import array_namespace
from minitransformer.core.errors import listed
from minitransformer.core.twins import Twin
from minitransformer.course.own.package import parts_of_blocks, parts_of_the_transformer
from minitransformer.gradcheck import CheckError
from minitransformer.models.language_model_config import LanguageModelConfig
from minitransformer.models.registry import KINDS, config_class


def require_paper_layers(fields):
    """Refuse models of other layers: those with another attention would lose it.

    Args:
        fields: of the model, by name, with its kind; those that are left out have their defaults.

    Raises:
        CheckError: such a model has other layers.
    """
    kind = fields["kind"]
    choices = config_class(kind).paper_layers
    if choices is None:
        kinds = ", ".join(name for name in KINDS if config_class(name).paper_layers is not None)
        raise CheckError(
            f"--own is for models of encoder and decoder layers like yours, and kind {kind!r} has "
            f"others: leave out --own, or take one of these kinds: {kinds}"
        )
    for name, allowed in choices.items():
        value = fields.get(name, allowed[0])
        if value not in allowed:
            raise CheckError(
                f"--own is for layers like yours, those of the paper, and {name}={value!r} makes "
                f"others: leave out --own, or choose {listed(allowed)}"
            )


def parts_for(config):
    """The parts of ``own`` that a trained model can run on, by its configuration.

    Raises:
        CheckError: it has layers that no function of theirs is like.
    """
    if not isinstance(config, LanguageModelConfig) or not _has_other_blocks(config):
        require_paper_layers(config.as_dict())
        return parts_of_the_transformer()
    if config.bias == "all" or config.positions == "alibi":
        what = "bias='all'" if config.bias == "all" else "positions='alibi'"
        raise CheckError(
            f"--own is for layers like yours, and {what} makes an attention that is not: leave out "
            "--own"
        )
    return parts_of_blocks()


def _has_other_blocks(config):
    allowed = config.paper_layers.items()
    return any(getattr(config, name) not in values for name, values in allowed)


def encoder_layer_twin(forward, backward):
    """The Twin of ``EncoderLayer`` that calls ``encoder_layer`` and its backward."""

    def layer_forward(layer, x, mask=None, rng=None):
        groups = _groups(layer)
        y, cache = forward(x, *_data(groups), *_settings(layer, mask), rng)
        return y, (groups, cache)

    def layer_backward(layer, dy, cache):
        groups, cache = cache
        dx, *gradients = backward(dy, cache)
        _add("encoder_layer_backward", groups, gradients)
        return dx

    return Twin(layer_forward, layer_backward)


def decoder_layer_twin(forward, backward):
    """The Twin of ``DecoderLayer`` that calls ``decoder_layer`` and its backward."""

    def layer_forward(layer, x, memory, mask=None, memory_mask=None, rng=None):
        groups = _groups(layer)
        y, cache = forward(x, memory, *_data(groups), *_settings(layer, mask, memory_mask), rng)
        return y, (groups, cache)

    def layer_backward(layer, dy, cache):
        groups, cache = cache
        dx, dmemory, *gradients = backward(dy, cache)
        _add("decoder_layer_backward", groups, gradients)
        return dx, dmemory

    return Twin(layer_forward, layer_backward)


def self_attention_twin(forward, backward):
    """The Twin of ``SelfAttention`` that calls ``grouped_query_attention`` and its backward.

    Theirs projects and attends; here queries and keys are turned in between. So it is given what
    has been projected and turned, and identities to project with.
    """

    def layer_forward(layer, query, key, value, mask=None, rng=None):
        maps = [layer.query, layer.key, layer.value]
        projected, caches = zip(
            *(m.forward(x) for m, x in zip(maps, (query, key, value), strict=True)), strict=True
        )
        (q, q_turned), (k, k_turned) = map(layer.turned, projected[:2])
        arrays = [q, k, projected[2]]  # (B, T, D), (B, T, G K) and (B, T, G K)
        eyes = [array_namespace(x).eye(x.shape[-1], dtype=x.dtype) for x in arrays]
        how = layer.num_heads, mask, layer.p, rng
        y, cache = forward(*arrays, *eyes, layer.output.weight.data, *how)  # (B, T, D)
        return y, (caches, q_turned, k_turned, cache)

    def layer_backward(layer, dy, cache):
        caches, q_turned, k_turned, cache = cache
        dq, dk, dv, _, _, _, dw_output = backward(dy, cache)
        _add("grouped_query_attention_backward", [[layer.output.weight]], [[dw_output]])
        dq, dk = layer.turned_backward(dq, q_turned), layer.turned_backward(dk, k_turned)
        dvalue = layer.value.backward(dv, caches[2])
        dkey = layer.key.backward(dk, caches[1])
        dquery = layer.query.backward(dq, caches[0])
        return dquery, dkey, dvalue

    return Twin(layer_forward, layer_backward)


def _groups(layer):
    """The parameters of each sublayer, and those of the norm around it."""
    names = "self_attention", "cross_attention", "feed_forward"
    return [
        module.parameters()
        for name in names
        if hasattr(layer, name)
        for module in (getattr(layer, name), getattr(layer, f"{name}_residual").norm)
    ]


def _data(groups):
    return [tuple(parameter.data for parameter in group) for group in groups]


def _settings(layer, *masks):
    """What follows the parameters, up to the generator."""
    residual = layer.feed_forward_residual
    return (
        layer.self_attention.num_heads,
        *masks,
        residual.pre_norm,
        residual.norm.epsilon,
        residual.p,
        layer.self_attention.p,
        layer.feed_forward.p,
    )


def _add(name, groups, gradients):
    """Add the gradients to those of the parameters."""
    try:
        pairs = [
            pair
            for group, of_group in zip(groups, gradients, strict=True)
            for pair in zip(group, of_group, strict=True)
        ]
    except (TypeError, ValueError) as error:
        raise CheckError(
            f"{name} must return, after the gradients of its inputs, a tuple of gradients for each "
            f"of {len(groups)} tuples of parameters ({error})"
        ) from error
    for parameter, grad in pairs:
        if grad.shape != parameter.data.shape:
            raise CheckError(
                f"{name} returned a gradient of shape {grad.shape} for a parameter of shape "
                f"{parameter.data.shape}"
            )
        parameter.grad += grad
