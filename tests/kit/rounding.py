"""How far apart rounding may take two right ways to compute the same.

A cache and a computation anew, a twin and its reference, the BLAS of two processors: they add up
the same terms in another order. Each addition rounds by half of the type's ε at most, relative to
what it adds up to, upwards as often as downwards; after n additions in a row the errors are a
random walk of n steps and add up to √n of one. A term too much or too few is larger by far: of n
terms one is about 1/√n of their sum, which is more than √n ε for all n below 1/ε, eight million
in float32.
"""

import numpy as np

from minitransformer.core.backend import to_host

# What the longest of many random walks, and what a layer enlarges, may take beyond the expectation.
MARGIN = 4
FEW = 400  # additions, of the layers and losses that tests are made of


def rounding(expected, additions):
    """How far off an array may be that is ``expected`` but for rounding: a number, absolute.

    It is relative to the largest entry: where terms cancel out to a small one, those were large.

    Args:
        expected: floats, in the type in which both sides compute.
        additions: how many come one after the other on the longest way from an input to a result:
            the lengths of all sums on it, as ``additions_of`` counts them for a model.
    """
    expected = np.asarray(expected)
    size = float(np.abs(expected).max(initial=0))
    return MARGIN * float(np.finfo(expected.dtype).eps) * additions**0.5 * size


def assert_but_for_rounding(found, expected, additions=FEW):
    """That both are the same but for rounding, of the same shape and type, wherever they are."""
    found, expected = to_host(found), to_host(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=0, atol=rounding(expected, additions))


def additions_of(module):
    """The lengths of the sums that a module makes with its matrices and kernels, (…, n, out)."""
    return sum(p.data.size // p.data.shape[-1] for p in module.parameters() if p.data.ndim > 1)
