"""Gradient checking: is a backward written by hand the derivative of its forward?

    print(check_pair(my_norm, my_norm_backward, (x, gamma, beta)))   # a pair of functions
    print(check_module(LayerNorm(8), x))                             # one of our modules, or yours

and ``minitransformer gradcheck`` for all layers and the whole model. How a check goes, by module:

    check       check_pair: the way through all that follows; modules, learner make pairs for it
    pair        calls forward and backward with care, and says in words what they do wrong
    faults      whether backward relies on anything but its cache
    inputs      warnings of inputs that would hide a mistake
    trial       the pair on these inputs: each gradient is judged, and a wrong one diagnosed
    numeric     central differences, and how far off they may be
    verdict     is one gradient right, wrong, or hidden by rounding?
    evidence    what is known of a wrong one, and a way to ask the pair again
    diagnosis   which mistake explains it
    report      what was found, in words
"""

from minitransformer.gradcheck.check import check_pair
from minitransformer.gradcheck.modules import check_module
from minitransformer.gradcheck.report import CheckError, Report, TensorReport

__all__ = ["CheckError", "Report", "TensorReport", "check_module", "check_pair"]
