import math
from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from elsewhere import in_a_process
from matplotlib import colormaps
from matplotlib.colors import to_hex
from matplotlib.image import imread

from minitransformer.evaluation import plots
from minitransformer.evaluation.plots import ATTENTION_COLOURS, attention_map, learning_rate
from minitransformer.tasks.language_modelling import LanguageModelling
from minitransformer.tasks.translation import Translation

SOURCE = ["▁Der", "▁Hund", "▁läuft", ".", "</s>"]
TARGET = ["▁The", "▁dog", "▁runs", "</s>"]
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(5), (2, 3, 4))  # (layers, heads, T, S)
METRICS = [
    {"kind": "train", "step": 50, "nll": 8.5, "learning_rate": 1e-4},
    {"kind": "train", "step": 100, "nll": 6.5, "learning_rate": 2e-4},
    {"kind": "validation", "step": 100, "epoch": 1, "nll": 6.0, "bleu": 1.5},
    {"kind": "train", "step": 150, "nll": 4.5, "learning_rate": 3e-4},
    {"kind": "validation", "step": 200, "epoch": 2, "nll": 4.0, "bleu": None},
    {"kind": "end", "step": 200},
    {"kind": "validation", "step": 300, "epoch": 3, "nll": 3.0, "bleu": 20.5},
]
loss_curves = partial(plots.loss_curves, task=Translation)


def panels(figure):
    return [axes for axes in figure.axes if axes.images]


def shown(axes):
    """The numbers behind the one image of a panel."""
    (image,) = axes.images
    return np.asarray(image.get_array())


def points(line):
    return [(int(x), float(y)) for x, y in line.get_xydata()]


def texts(labels):
    return [label.get_text() for label in labels]


def visible_labels(axis):
    return [label for label in axis.get_ticklabels() if label.get_visible() and label.get_text()]


def test_each_head_of_the_last_layer_has_a_panel(device):
    figure = attention_map(device.asarray(WEIGHTS), SOURCE, TARGET)
    assert figure.get_suptitle() == "layer 2 of 2"
    assert [axes.get_title() for axes in panels(figure)] == ["head 1", "head 2", "head 3"]
    for axes, weights in zip(panels(figure), WEIGHTS[1], strict=True):
        np.testing.assert_array_equal(shown(axes), weights)


def test_another_layer_can_be_chosen():
    figure = attention_map(WEIGHTS, SOURCE, TARGET, layer=0)
    assert figure.get_suptitle() == "layer 1 of 2"
    np.testing.assert_array_equal([shown(axes) for axes in panels(figure)], WEIGHTS[0])


def test_one_map_is_one_panel():
    (axes,) = panels(attention_map(WEIGHTS[0, 1].tolist(), SOURCE, TARGET))
    np.testing.assert_array_equal(shown(axes), WEIGHTS[0, 1])


def test_a_token_stands_beside_its_own_row_or_column():
    figure = attention_map(WEIGHTS, SOURCE, TARGET)
    figure.draw_without_rendering()
    lower_left = [axes for axes in panels(figure) if visible_labels(axes.yaxis)][-1]
    assert lower_left.get_xlabel() == "source"
    assert lower_left.get_ylabel() == "target"
    # In data coordinates the centre of cell (t, s) is at x = s, y = t.
    for axis, tokens in ((lower_left.xaxis, SOURCE), (lower_left.yaxis, TARGET)):
        assert list(axis.get_ticklocs()) == list(range(len(tokens)))
        assert texts(axis.get_ticklabels()) == tokens
    assert lower_left.get_ylim() == (3.5, -0.5)  # reading downwards
    assert lower_left.get_xlim() == (-0.5, 4.5)


def test_all_panels_share_one_scale_from_zero_to_the_largest_weight():
    figure = attention_map(WEIGHTS, SOURCE, TARGET)
    assert [axes.images[0].get_clim() for axes in panels(figure)] == [(0, WEIGHTS[1].max())] * 3
    assert figure.axes[-1].get_ylabel() == "attention weight"


def test_no_attention_is_white_all_is_dark_and_more_is_darker_also_in_grey():
    (axes,) = panels(attention_map(WEIGHTS[0, 0], SOURCE, TARGET))
    assert axes.images[0].get_cmap() == colormaps[ATTENTION_COLOURS]
    colours = axes.images[0].get_cmap()(np.linspace(0, 1, 256))[:, :3]
    grey = colours @ [0.299, 0.587, 0.114]
    assert colours[0].min() > 0.96 > 0.25 > grey[-1]
    assert (np.diff(grey) < 0).all()


SHAPES = set(product([1, 4, 5], [(1, 1), (1, 9), (30, 45), (9, 300)]))
FAST = {(1, (1, 1)), (5, (1, 9)), (4, (30, 45)), (1, (9, 300))}


@pytest.mark.parametrize(("num_heads", "length", "source_length"), [
    *((heads, *lengths) for heads, lengths in sorted(FAST)),
    *(pytest.param(h, *x, marks=pytest.mark.slow) for h, x in sorted(SHAPES - FAST)),
])  # fmt: skip
def test_labels_of_any_sentence_are_readable(num_heads, length, source_length):
    weights = np.ones((1, num_heads, length, source_length))
    source = [f"▁Wort{i}" for i in range(source_length)]
    target = [f"▁word{i}" for i in range(length)]
    figure = attention_map(weights, source, target)
    figure.draw_without_rendering()
    for axes in panels(figure):
        columns = [label.get_window_extent() for label in visible_labels(axes.xaxis)]
        rows = [label.get_window_extent() for label in visible_labels(axes.yaxis)]
        assert all(figure.bbox.count_contains([box.min, box.max]) == 2 for box in columns + rows)
        assert all(left.x1 <= right.x0 for left, right in pairwise(columns))
        assert all(upper.y0 >= lower.y1 for upper, lower in pairwise(rows))
        assert max(axes.get_window_extent().size) > figure.dpi  # an inch
        assert axes.title.get_window_extent().width <= axes.get_window_extent().width
        labels = visible_labels(axes.xaxis) + visible_labels(axes.yaxis)
        assert all(label.get_fontsize() >= 9 for label in labels)


@pytest.mark.parametrize(("num_heads", "length", "source_length", "arrangement"), [
    (4, 9, 9, (2, 2)),
    (8, 9, 9, (2, 4)),
    (6, 9, 9, (2, 3)),
    (5, 9, 9, (1, 5)),
    (4, 1, 9, (4, 1)),
    (4, 9, 1, (1, 4)),
])  # fmt: skip
def test_panels_fill_a_picture_of_handy_shape(num_heads, length, source_length, arrangement):
    weights = np.ones((1, num_heads, length, source_length))
    figure = attention_map(weights, ["a"] * source_length, ["b"] * length)
    assert panels(figure)[0].get_gridspec().get_geometry() == arrangement


def test_a_very_long_sentence_keeps_every_nth_label_at_its_place():
    source = [f"w{i}" for i in range(200)]
    figure = attention_map(np.full((4, 200), 1 / 200), source, TARGET)
    assert max(figure.get_size_inches()) < 20
    (axes,) = panels(figure)
    places = axes.xaxis.get_ticklocs()
    assert 50 <= len(places) < 100
    assert texts(axes.xaxis.get_ticklabels()) == [source[int(place)] for place in places]


def test_dollars_are_money_not_mathematics(tmp_path):
    source, target = ["$x$", "$\\frac$", "$5", "_a^b", "%"], ["$y$", "$", "\\", "&"]
    figure = attention_map(WEIGHTS, source, target, tmp_path / "a.png")
    assert not any(
        label.get_parse_math()
        for axes in panels(figure)
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels())
    )


@pytest.mark.parametrize(("weights", "source", "target", "layer", "message"), [
    (WEIGHTS, SOURCE[1:], TARGET, -1, r"\(4, 5\), and there are 4 target and 4 source"),
    (WEIGHTS, SOURCE, TARGET[1:], -1, r"\(4, 5\), and there are 3 target and 5 source"),
    (WEIGHTS.swapaxes(2, 3), SOURCE, TARGET, -1, r"\(5, 4\), and there are 4 target"),
    (np.empty((2, 3, 0, 5)), SOURCE, [], -1, "at least one of each"),
    (WEIGHTS[0], SOURCE, TARGET, -1, r"shape \(3, 4, 5\); give \(layers, heads, T, S\)"),
    (WEIGHTS, SOURCE, TARGET, 2, "no layer 2; choose 0 to 1"),
    (WEIGHTS, SOURCE, TARGET, -3, "no layer -3; choose 0 to 1"),
])  # fmt: skip
def test_weights_that_do_not_fit_are_refused(weights, source, target, layer, message):
    with pytest.raises(ValueError, match=message):
        attention_map(weights, source, target, layer=layer)


def test_loss_curves_show_nll_over_bleu():
    figure = loss_curves(METRICS)
    losses, scores = figure.axes
    training, validation = losses.lines
    (bleu,) = scores.lines
    assert points(training) == [(50, 8.5), (100, 6.5), (150, 4.5)]
    assert points(validation) == [(100, 6.0), (200, 4.0), (300, 3.0)]
    assert points(bleu) == [(100, 1.5), (300, 20.5)]
    assert texts(losses.get_legend().get_texts()) == ["training", "validation"]
    assert losses.get_ylabel() == "NLL (nats per target token)"
    assert scores.get_ylabel() == "validation BLEU"
    assert scores.get_xlabel() == "step"
    figure.draw_without_rendering()
    assert losses.get_xlim() == scores.get_xlim()
    assert visible_labels(scores.xaxis)
    assert not visible_labels(losses.xaxis)  # the numbers below serve both
    assert to_hex(training.get_color()) != to_hex(validation.get_color())


def test_the_score_of_another_task_is_drawn_under_its_own_name():
    rows = [{"kind": "validation", "step": 7, "epoch": 1, "nll": 1.5, "perplexity": 4.5}]
    losses, scores = plots.loss_curves(rows, task=LanguageModelling).axes
    assert points(scores.lines[0]) == [(7, 4.5)]
    assert scores.get_ylabel() == "validation perplexity"
    assert losses.get_ylabel() == "NLL (nats per token)"


def test_rows_may_be_read_while_they_are_drawn():
    figure = loss_curves(iter(METRICS))
    assert [len(line.get_xdata()) for axes in figure.axes for line in axes.lines] == [3, 3, 2]


def test_after_a_resume_the_last_row_of_a_step_counts():
    resumed = [*METRICS, {"kind": "train", "step": 100, "nll": 6.25, "learning_rate": 5e-4}]
    resumed.append({"kind": "train", "step": 75, "nll": 7.5, "learning_rate": 3e-4})  # a new one
    training = [(50, 8.5), (75, 7.5), (100, 6.25), (150, 4.5)]
    assert points(loss_curves(resumed).axes[0].lines[0]) == training
    assert points(learning_rate(resumed).axes[0].lines[0])[2] == (100, 5e-4)


def test_a_run_without_validation_says_so():
    losses, scores = loss_curves(METRICS[:2]).axes
    assert points(losses.lines[0]) == [(50, 8.5), (100, 6.5)]
    assert texts(losses.get_legend().get_texts()) == ["training"]
    assert texts(losses.texts) == []
    assert texts(scores.texts) == ["nothing yet"]


@pytest.mark.parametrize("draw", [loss_curves, learning_rate])
def test_a_run_without_rows_is_drawn_empty(draw, tmp_path):
    figure = draw([], tmp_path / "empty.png")
    assert [texts(axes.texts) for axes in figure.axes] == [["nothing yet"]] * len(figure.axes)
    assert (tmp_path / "empty.png").stat().st_size > 1000


@pytest.mark.parametrize("step", [0, 1, 3])
def test_a_single_row_is_a_visible_point_over_a_whole_step(step):
    rows = [
        {"kind": "train", "step": step, "nll": 9.0, "learning_rate": 1e-4},
        {"kind": "validation", "step": step, "nll": 9.0, "bleu": 0.0},
    ]
    for axes in (*loss_curves(rows).axes, *learning_rate(rows).axes):
        low, high = axes.get_xlim()
        assert low <= step <= high
        assert all(line.get_marker() != "None" for line in axes.lines)
        assert all(tick == int(tick) for tick in axes.get_xticks())


def test_the_learning_rate_is_drawn_over_the_steps():
    (axes,) = learning_rate(METRICS).axes
    (line,) = axes.lines
    assert points(line) == [(50, 1e-4), (100, 2e-4), (150, 3e-4)]
    assert axes.get_ylabel() == "learning rate"
    assert axes.get_xlabel() == "step"


@pytest.mark.parametrize("draw", [
    lambda path: attention_map(WEIGHTS, SOURCE, TARGET, path),
    lambda path: loss_curves(METRICS, path),
    lambda path: learning_rate(METRICS, path),
])  # fmt: skip
def test_a_path_gets_a_png_in_print_resolution(draw, tmp_path):
    path = tmp_path / "picture.png"
    figure = draw(path)
    height, width, _ = imread(path).shape
    for pixels, inches in zip((width, height), figure.get_size_inches(), strict=True):
        assert math.isclose(pixels, 150 * inches, abs_tol=1)
        assert 300 < pixels < 2500


def test_the_suffix_chooses_the_format(tmp_path):
    learning_rate(METRICS, tmp_path / "picture.svg")
    assert "<svg" in (tmp_path / "picture.svg").read_text()


def test_matplotlib_is_imported_only_to_draw_and_pyplot_never():
    in_a_process("""if True:
        import sys
        from minitransformer.evaluation import plots
        assert "matplotlib" not in sys.modules
        plots.learning_rate([])
        plots.attention_map([[1.0]], ["a"], ["b"])
        assert "matplotlib.pyplot" not in sys.modules
    """)


# Pictures and classes


COUNTS = np.array([[8, 2, 0], [1, 3, 0], [0, 0, 0]])
NAMES = ["shirt", "coat", "$10 & more$"]


def test_what_is_taken_for_what_is_a_map_of_shares_with_the_counts_in_it(tmp_path):
    figure = plots.confusion_matrix(COUNTS, NAMES, tmp_path / "map.png")
    (axes,) = panels(figure)
    np.testing.assert_allclose(shown(axes), [[0.8, 0.2, 0], [0.25, 0.75, 0], [0, 0, 0]])
    written = {text.get_position(): text.get_text() for text in axes.texts}
    assert written == {(0, 0): "8", (1, 0): "2", (0, 1): "1", (1, 1): "3"}  # (column, row)
    assert texts(axes.yaxis.get_ticklabels()) == texts(axes.xaxis.get_ticklabels()) == NAMES
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("what it is", "what was said")
    assert imread(tmp_path / "map.png").shape[0] > 100


def test_a_map_of_a_thousand_classes_fits_on_a_screen():
    figure = plots.confusion_matrix(np.eye(1000, dtype=int), [f"class {i}" for i in range(1000)])
    assert max(figure.get_size_inches()) < 25
    (axes,) = panels(figure)
    assert not axes.texts
    assert len(visible_labels(axes.yaxis)) < 100


@pytest.mark.parametrize("channels", [1, 3])
def test_what_was_looked_at_lies_over_the_picture_that_stands_beside_it(channels, tmp_path):
    picture = np.arange(4 * 6 * channels, dtype=np.uint8).reshape(4, 6, channels)
    weights = np.zeros((4, 6))
    weights[1, 2] = 0.5
    file = tmp_path / "looked.png"
    figure = plots.looked_at(picture, weights, file, title="a $hirt$, 98%")
    first, second = panels(figure)
    np.testing.assert_array_equal(shown(first), picture if channels == 3 else picture[..., 0])
    below, above = second.images
    np.testing.assert_array_equal(np.asarray(above.get_array()), weights)
    np.testing.assert_allclose(np.asarray(below.get_array()), picture.mean(axis=-1))
    assert figure.get_suptitle() == "a $hirt$, 98%"
    plots.looked_at(picture, np.zeros((4, 6)), file)  # of a model to which nothing matters
