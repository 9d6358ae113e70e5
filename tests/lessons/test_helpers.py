"""What lessons show by ``minitransformer.course.notebooks``."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from minitransformer.course.notebooks import shape_table, source_of, use_style
from minitransformer.layers.layer_norm import LayerNorm, layer_norm

SIZES = {"B": 2, "T": 5, "D": 8}


def test_a_table_of_shapes_has_symbols_and_numbers():
    table = shape_table(
        SIZES, x=(np.zeros((2, 5, 8)), "B T D", "the input"), s=(np.ones(()), "", "σ")
    )
    assert table._repr_markdown_().splitlines() == [
        "| array | shape | here | what it is |",
        "| --- | --- | --- | --- |",
        "| `x` | (B, T, D) | (2, 5, 8) | the input |",
        "| `s` | () | () | σ |",
    ]
    assert repr(table) == table._repr_markdown_()


def test_an_axis_may_be_a_number():
    assert "(B, 1) | (2, 1)" in repr(shape_table(SIZES, s=(np.zeros((2, 1)), "B 1", "")))


@pytest.mark.parametrize("symbols", ["B D T", "T D", "B T D 1"])
def test_a_table_with_a_wrong_shape_is_refused(symbols):
    with pytest.raises(ValueError, match=r"x should be \(.*\) = \(.*\), and is \(2, 5, 8\)"):
        shape_table(SIZES, x=(np.zeros((2, 5, 8)), symbols, ""))


def test_source_is_shown_as_it_is_installed_one_after_the_other():
    shown = source_of(layer_norm, LayerNorm.forward)
    assert repr(shown).startswith("@twinned\ndef layer_norm(x, gamma, beta, epsilon=1e-5):")
    assert "\n\n\ndef forward(self, x):\n    return" in repr(shown)
    assert shown._repr_markdown_() == f"```python\n{shown!r}\n```"


def test_no_two_lines_of_a_plot_share_colour_or_dashes():
    with matplotlib.rc_context():
        use_style()
        styles = plt.rcParams["axes.prop_cycle"].by_key()
    assert len(set(styles["color"])) == len(set(map(str, styles["linestyle"]))) == 6
