"""Pictures: where the model looked, and how training went.

Each function takes plain arrays or the rows of ``metrics.jsonl``, returns a matplotlib Figure and,
given a path, also saves it there, as PNG, PDF or SVG by its suffix; into an open file, as PNG. No
pyplot: no window opens and no figure stays behind. A notebook that shows the returned figures needs
``%matplotlib inline``. Without matplotlib they raise a MissingLibraryError.
"""

import itertools
import math

from minitransformer.core.backend import to_host
from minitransformer.core.errors import InputError
from minitransformer.core.libraries import library

ATTENTION_COLOURS = "Blues"  # white for a weight of nothing to dark for all, in grey too

_DPI = 150
_CELL = 0.24  # inches for one token, room for its label in 9 points
_PANEL = 16.0  # inches: panels of more tokens than fit shrink their cells and skip labels
_TRAINING, _VALIDATION = "#0072b2", "#d55e00"  # blue and vermilion, distinct to every eye
_GROUPS = _TRAINING, _VALIDATION, "#009e73", "#cc79a7", "#56b4e9", "#e69f00"  # as distinct


def attention_map(weights, source_tokens, target_tokens, path=None, *, layer=-1):
    """Where the decoder looked in the source while it wrote each target token, as heat maps.

    Args:
        weights: cross-attention, (layers, heads, T, S), or one map, (T, S); each row sums to 1.
        source_tokens: S strings.
        target_tokens: T strings; row t of the weights was used to choose target token t.
        path: file to save to, or None.
        layer: which one to draw, 0 the first, -1 the last.

    Raises:
        ValueError: the shape of the weights does not match the tokens; there is no such layer.
    """
    maps, title, panel_titles = _maps(to_host(weights), layer)  # (panels, T, S)
    num_panels, num_target, num_source = maps.shape
    if (num_target, num_source) != (len(target_tokens), len(source_tokens)) or not maps.size:
        raise ValueError(
            f"each map is (T, S) = ({num_target}, {num_source}), and there are "
            f"{len(target_tokens)} target and {len(source_tokens)} source tokens; "
            "give one token for each row and each column, at least one of each"
        )
    longer = max(num_target, num_source)
    cell = min(max(_CELL, 1 / longer), _PANEL / longer)  # inches
    width, height = num_source * cell, num_target * cell
    num_rows, num_columns = _grid(num_panels, width, height)
    left, below = (0.08 * max(map(len, tokens)) for tokens in (target_tokens, source_tokens))
    figure = _figure(
        figsize=(
            num_columns * (width + 0.2) + left + 1.5,
            max(num_rows * (height + 0.35) + below + 0.7, 2.0),
        ),
        layout="compressed",
    )
    figure.suptitle(title, fontsize=11)
    grid = figure.subplots(num_rows, num_columns, sharex=True, sharey=True, squeeze=False)
    largest = float(maps.max())  # one scale for all panels, so that they can be compared
    for axes, panel, panel_title in zip(grid.flat, maps, panel_titles, strict=True):
        image = axes.imshow(panel, cmap=ATTENTION_COLOURS, vmin=0, vmax=largest)
        axes.set_title(panel_title, fontsize=10)
    step = math.ceil(_CELL / cell)  # label every token, or every step-th where they are too small
    for axes in grid[:, 0]:
        axes.set_ylabel("target")
        _label(axes.yaxis, target_tokens, step)
    for axes in grid[-1]:
        axes.set_xlabel("source")
        _label(axes.xaxis, source_tokens, step, rotation=90)
    figure.colorbar(image, ax=grid, label="attention weight", aspect=40, pad=0.02)
    return _saved(figure, path)


def _maps(weights, layer):
    """The maps to draw, (panels, T, S), the title above all and that of each."""
    if weights.ndim == 2:
        return weights[None], "", [""]
    if weights.ndim != 4:
        raise ValueError(
            f"the weights have the shape {weights.shape}; "
            "give (layers, heads, T, S) of one sentence, or (T, S) of one head"
        )
    num_layers, num_heads = weights.shape[:2]
    if not -num_layers <= layer < num_layers:
        raise InputError(
            f"there is no layer {layer}; choose 0 to {num_layers - 1}, or -1 for the last"
        )
    title = f"layer {layer % num_layers + 1} of {num_layers}"
    return weights[layer], title, [f"head {head + 1}" for head in range(num_heads)]


def _grid(num_panels, width, height):
    """Rows and columns without a hole, together as near to 3 : 2 as the panels allow."""
    divisors = [n for n in range(1, num_panels + 1) if num_panels % n == 0]
    num_columns = min(
        divisors, key=lambda n: abs(math.log(n * width / (num_panels / n * height) / 1.5))
    )
    return num_panels // num_columns, num_columns


def _label(axis, tokens, step, rotation=0):
    axis.set_ticks(range(0, len(tokens), step), tokens[::step])
    for label in axis.get_ticklabels():
        label.set(fontsize=9, rotation=rotation, parse_math=False)  # a $ is a $, not mathematics


def confusion_matrix(counts, names, path=None):
    """Which class is taken for which, as a map: a row is what pictures are of.

    Args:
        counts: (classes, said), how often.
        names: of the classes.
        path: file to save to, or None.
    """
    counts = to_host(counts)
    cell = min(0.45, _PANEL / len(names))  # inches
    side, room = cell * len(names), 0.08 * max(map(len, names))
    figure = _figure(figsize=(side + room + 2.0, side + room + 1.0), layout="compressed")
    axes = figure.subplots()
    shares = counts / counts.sum(axis=1, keepdims=True).clip(1)
    image = axes.imshow(shares, cmap=ATTENTION_COLOURS, vmin=0, vmax=1)
    if cell > _CELL:
        for row, column in zip(*counts.nonzero(), strict=True):
            colour = "white" if shares[row, column] > 0.5 else "black"
            text = dict(ha="center", va="center", fontsize=7, color=colour)
            axes.text(column, row, f"{counts[row, column]}", **text)
    step = math.ceil(_CELL / cell)
    _label(axes.yaxis, names, step)
    _label(axes.xaxis, names, step, rotation=90)
    axes.set_ylabel("what it is")
    axes.set_xlabel("what was said")
    figure.colorbar(image, ax=axes, label="share of the row", aspect=40, pad=0.02)
    return _saved(figure, path)


def looked_at(picture, weights, path=None, *, title=""):
    """A picture, and beside it the same, lighter the more a place in it mattered.

    Args:
        picture: (Y, X, C), uint8.
        weights: (Y, X), each 0 or more.
        path: file to save to, or None.
        title: above both.
    """
    figure = _figure(figsize=(6.4, 3.4), layout="constrained")
    figure.suptitle(title, fontsize=11, parse_math=False)
    grey = picture.mean(axis=-1)
    panels = figure.subplots(1, 2)
    panels[0].imshow(picture if picture.shape[-1] == 3 else grey, cmap="gray", vmin=0, vmax=255)
    panels[1].imshow(grey, cmap="gray", vmin=0, vmax=255)
    panels[1].imshow(weights, cmap="inferno", alpha=0.7, vmin=0, vmax=float(weights.max()) or 1)
    for axes in panels:
        axes.set_axis_off()
    return _saved(figure, path)


def loss_curves(metrics, path=None, *, task, package=()):
    """Training and validation NLL over the steps, and the score below.

    Args:
        metrics: the rows of ``metrics.jsonl``, dicts with ``kind`` ``"train"`` (step, nll) or
            ``"validation"`` (step, nll, the score); other kinds are passed over. Where a step
            occurs more than once, as after a resume, its last row counts.
        path: file to save to, or None.
        task: the Task, whose ``score`` and ``unit`` they are.
        package: rows of the same kinds, of a training on the package's functions.
    """
    figure = _figure(figsize=(7, 6), layout="constrained")
    losses, scores = figure.subplots(2, sharex=True, height_ratios=(3, 2))
    metrics = list(metrics)  # gone through once for each curve
    curves = [
        (losses, "train", "nll", dict(label="training", color=_TRAINING, marker=".")),
        (losses, "validation", "nll", dict(label="validation", color=_VALIDATION, marker="o")),
        (scores, "validation", task.score.name, dict(color=_VALIDATION, marker="o")),
    ]
    for axes, kind, name, style in curves:
        _plot(axes, metrics, kind, name, **style)
    style = dict(label="training, the package's functions", color="black", linestyle="--")
    _plot(losses, package, "train", "nll", **style)
    losses.set_ylabel(f"NLL (nats per {task.unit})")
    if losses.lines:
        losses.legend(frameon=False)
    scores.set_ylabel(f"validation {task.score.label}")
    scores.set_xlabel("step")
    return _saved(_finished(figure), path)


def compared(curves, path=None, *, task):
    """Validation NLL and score of groups of runs, over the steps and over the time.

    Args:
        curves: dict from the name of a group to a list of its runs, each a list of rows of
            ``metrics.jsonl`` of kind ``"validation"``, with step, seconds, nll and the score.
        path: file to save to, or None.
        task: the Task, whose ``score`` and ``unit`` they are.
    """
    figure = _figure(figsize=(11, 6), layout="constrained")
    panels = figure.subplots(2, 2, sharex="col", sharey="row")
    scales = f"NLL (nats per {task.unit})", f"validation {task.score.label}"
    styles = [dict(color=colour, linestyle=line) for line in ("-", "--", ":") for colour in _GROUPS]
    for (steps, times), name, scale in zip(panels, ("nll", task.score.name), scales, strict=True):
        steps.set_ylabel(scale)
        for axes, clock, unit in ((steps, "step", 1), (times, "seconds", 60)):
            for (group, runs), style in zip(curves.items(), itertools.cycle(styles), strict=False):
                for i, run in enumerate(runs):
                    x, y = [row[clock] / unit for row in run], [row[name] for row in run]
                    label = f"_{group}" if i else group  # once, as matplotlib has it
                    axes.plot(x, y, label=label, marker=".", linewidth=1.2, **style)
    panels[0, 0].legend(frameon=False, ncols=math.ceil(len(curves) / 8))
    for axes, label in zip(panels[1], ("step", "minutes"), strict=True):
        axes.set_xlabel(label)
    for axes in panels.flat:
        axes.grid(color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
    return _saved(figure, path)


def learning_rate(metrics, path=None):
    """The learning rate of each logged step; ``metrics`` and ``path`` as for :func:`loss_curves`.

    The rows of kind ``"train"`` have it as ``learning_rate``.
    """
    figure = _figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    _plot(axes, metrics, "train", "learning_rate", color=_TRAINING, marker=".")
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)
    axes.set_ylabel("learning rate")
    axes.set_xlabel("step")
    return _saved(_finished(figure), path)


def _plot(axes, metrics, kind, name, **style):
    """A curve over the steps at which rows of this kind have a value of this name, if any."""
    rows = (row for row in metrics if row["kind"] == kind and row.get(name) is not None)
    values = {row["step"]: row[name] for row in rows}
    steps = sorted(values)
    if steps:
        axes.plot(steps, [values[step] for step in steps], linewidth=1.2, markersize=4, **style)


def _finished(figure):
    """What panels with curves over steps share; where there is no curve yet they say so."""
    steps = [step for axes in figure.axes for line in axes.lines for step in line.get_xdata()]
    last = max([1, *steps])
    for axes in figure.axes:
        axes.grid(color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlim(0, 1.02 * last)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if not axes.lines:
            axes.set_yticks([])
            axes.text(0.5, 0.5, "nothing yet", transform=axes.transAxes, ha="center", color="0.4")
    return figure


def _figure(**options):
    return library("matplotlib.figure", "a picture").Figure(**options)


def _saved(figure, path):
    if path is not None:
        figure.savefig(path, dpi=_DPI)
    return figure
