"""What models of pictures promise beside what every model does, and the sizes that are known."""

import re
from dataclasses import replace

import kinds
import numpy as np
import pytest

from minitransformer.models.registry import config_class, new_model

of_pictures = pytest.mark.parametrize("row", kinds.PICTURES, ids=str)


@of_pictures
def test_its_loss_is_that_of_its_logits_and_smoothed_labels_and_every_class_counts(row):
    model, batch = row.model(), row.batch()
    batch.labels[0] = 0
    logits, _ = model.logits(batch.pictures)
    assert logits.shape == (len(batch.labels), model.config.num_classes)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    for smoothing in (0.0, 0.1):
        (loss, nll), _ = model.loss(batch, smoothing=smoothing)
        assert nll == pytest.approx(-log_p[np.arange(len(logits)), batch.labels].mean())
        assert loss == pytest.approx((1 - smoothing) * nll - smoothing * log_p.mean())


@of_pictures
def test_of_no_pictures_it_says_nothing(row):
    model = row.model()
    logits, cache = model.logits(row.batch().pictures[:0])
    assert logits.shape == (0, model.config.num_classes)
    model.backward(logits, cache)
    assert not model.flat.grad.any()


@of_pictures
def test_the_gradient_of_a_class_is_that_of_each_pixel(row):
    """What a picture of what it looked at shows."""
    model, batch = row.model(), row.batch()
    logits, cache = model.logits(batch.pictures)
    of_a_class = np.zeros_like(logits)
    of_a_class[:, 1] = 1
    gradient = model.backward(of_a_class, cache)
    assert gradient.shape == batch.pictures.shape
    step = 1e-7 * np.random.default_rng(0).standard_normal(gradient.shape)
    up, down = (model.logits(batch.pictures + s)[0][:, 1].sum() for s in (step, -step))
    assert (gradient * step).sum() == pytest.approx((up - down) / 2, rel=1e-4)


@of_pictures
def test_pictures_of_another_size_are_refused_with_the_size_they_should_have(row):
    model, batch = row.model(), row.batch()
    takes = "(batch, {} rows, {} columns, {} channels)".format(*model.config.shape)
    for change in ((0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, -1)):
        shape = (*np.add(batch.pictures.shape, change).tolist(),)
        words = f"pictures of shape {shape} are not of the model's size: it takes {takes}"
        for look in (model.check, model.loss):
            with pytest.raises(ValueError, match=re.escape(words)):
                look(replace(batch, stored=np.zeros(shape, np.float32)))


@of_pictures
def test_a_label_that_is_no_class_is_found_before_a_batch_goes_to_a_device(row):
    model, batch = row.model(), row.batch()
    model.check(batch)
    for wrong in (-1, 5):
        batch.labels[1] = wrong
        words = f"the label {wrong} is no class of the model, 0 <= label < 5; is it for other data"
        with pytest.raises(ValueError, match=words):
            model.check(batch)


PAPERS = [  # height and width, channels, classes; choices; parameters
    ("alexnet", (227, 3, 1000), dict(form="large"), 60_965_224),
    *(
        ("residual-network", (224, 3, 1000), dict(form="large", shortcut="B") | sizes, count)
        for sizes, count in (
            (dict(depth=18), 11_689_512),
            (dict(depth=34), 21_797_672),
            (dict(depth=50, block="bottleneck"), 25_557_032),
            (dict(depth=101, block="bottleneck"), 44_549_160),
            (dict(depth=152, block="bottleneck"), 60_192_808),
        )
    ),
]


def config_of(kind, sizes, choices):
    side, channels, classes = sizes
    return config_class(kind)(side, side, channels, classes, **choices)


@pytest.mark.parametrize(("kind", "sizes", "choices", "count"), PAPERS)
def test_the_papers_networks_have_as_many_parameters_as_theirs(kind, sizes, choices, count):
    assert config_of(kind, sizes, choices).num_parameters() == count


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "sizes", "choices", "count"), [PAPERS[0], PAPERS[1], PAPERS[3]])
def test_some_of_them_are_built_and_run(kind, sizes, choices, count):
    model = new_model(config_of(kind, sizes, choices))
    logits, _ = model.logits(np.zeros((1, *model.config.shape), np.float32))
    assert model.num_parameters() == count
    assert logits.shape == (1, 1000)


@pytest.mark.parametrize(("kind", "most"), [
    ("small-network", 100_000), ("residual-network", 300_000), ("vision-transformer", 400_000),
])  # fmt: skip
def test_by_default_a_model_is_small_enough_for_two_cores(kind, most):
    assert config_of(kind, (28, 1, 10), {}).num_parameters() < most
