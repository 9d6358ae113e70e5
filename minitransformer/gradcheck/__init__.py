"""Gradient checking: is a backward written by hand the derivative of its forward?

    print(check_pair(my_norm, my_norm_backward, (x, gamma, beta)))   # a pair of functions
    print(check_module(LayerNorm(8), x))                             # one of our modules, or yours

and ``minitransformer gradcheck`` for all layers and the whole model.
"""

from minitransformer.gradcheck.check import check_pair
from minitransformer.gradcheck.modules import check_module
from minitransformer.gradcheck.report import CheckError, Report, TensorReport

__all__ = ["CheckError", "Report", "TensorReport", "check_module", "check_pair"]
