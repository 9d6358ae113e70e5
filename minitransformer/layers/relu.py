"""Rectified linear unit, y = max(0, x) (section 3.3).

Derivation. The slope is 1 where x > 0 and 0 where x < 0. At x = 0 there is none; we take 0. So
the gradient passes where the output is alive and stops elsewhere:  dx = dy · [x > 0].
"""

from minitransformer.core.backend import array_namespace
from minitransformer.core.twins import twinned


@twinned
def relu(x):
    """max(0, x) of every entry; y has the shape of x."""
    return array_namespace(x).maximum(x, 0), x > 0


@twinned
def relu_backward(dy, cache):
    """Gradient dx, of the shape of dy."""
    alive = cache
    return dy * alive
