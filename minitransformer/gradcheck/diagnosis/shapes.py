"""A gradient that has another shape than its input."""

from itertools import combinations, permutations

from minitransformer.gradcheck.diagnosis.experiments import same


def wrong_shape(evidence):
    """A sum forgotten, or one too many; axes in another order; another array's gradient."""
    analytic, numeric = evidence.analytic, evidence.numeric
    if analytic.shape == numeric.shape:
        return ""
    message = f"its shape is {analytic.shape} and should be {numeric.shape}"
    for kind in (_leading, _permuted, _summed_over, _reshaped, _not_summed_enough):
        if cause := kind(analytic, numeric):
            return f"{message}: {cause}"
    return message


def _leading(analytic, numeric):
    """A bias gradient not summed over the batch."""
    axes = tuple(range(analytic.ndim - numeric.ndim))
    if axes and same(analytic.sum(axis=axes), numeric):
        return f"it still has to be summed over the leading axes, {axes}"
    return ""


def _permuted(analytic, numeric):
    """A product with its factors in the wrong order."""
    if analytic.ndim < 2 or analytic.ndim != numeric.ndim:
        return ""
    if same(analytic.swapaxes(-1, -2), numeric):
        return "it is the transpose of the right gradient"
    for order in permutations(range(analytic.ndim)):
        if same(analytic.transpose(order), numeric):
            return f"it is right with its axes in the order {order}"
    return ""


def _summed_over(analytic, numeric):
    """A gradient of what was broadcast has to be summed over the axes it was broadcast along."""
    for count in range(1, analytic.ndim + 1):
        for axes in combinations(range(analytic.ndim), count):
            for keep in (False, True):
                total = analytic.sum(axis=axes, keepdims=keep)
                if total.size < analytic.size and same(total, numeric):
                    listed = axes if count > 1 else axes[0]
                    kept = " with keepdims=True" if keep else ""
                    of = "axes" if count > 1 else "axis"
                    return f"it still has to be summed over {of} {listed}{kept}"
    return ""


def _reshaped(analytic, numeric):
    """An axis of size 1 lost or left, or the entries never put back in their shape."""
    if analytic.size == numeric.size and same(analytic.reshape(numeric.shape), numeric):
        return "it holds the right numbers and only has to be reshaped"
    return ""


def _not_summed_enough(analytic, numeric):
    """Summed over axes that the input has."""
    for count in range(1, numeric.ndim + 1):
        for axes in combinations(range(numeric.ndim), count):
            for keep in (False, True):
                if same(analytic, numeric.sum(axis=axes, keepdims=keep)):
                    listed = axes if count > 1 else axes[0]
                    return (
                        f"it is the right one summed over {'axes' if count > 1 else 'axis'} "
                        f"{listed}, which this input has"
                    )
    return ""
