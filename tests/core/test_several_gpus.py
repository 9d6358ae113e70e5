"""A model on the second GPU, while the first one is current: in this thread and in new ones."""

import numpy as np
import pytest
from elsewhere import in_a_thread
from on_device import arrays_of
from strict_cupy import StrictArray, strict
from tiny_run import tiny_recipe, tiny_trainer
from tiny_translator import captions, train_once

from minitransformer.cases.models import small_config
from minitransformer.core.backend import CPU, Device, DeviceError, select_device, to_host
from minitransformer.inference.translator import Translator
from minitransformer.models.transformer import Transformer
from minitransformer.runs.run_folder import RunFolder

SECOND = Device("stand-in:1", strict, 1)
GERMAN, ENGLISH = map(list, zip(*captions(), strict=True))


@pytest.mark.parametrize("made", [
    lambda config: Transformer(config, device=SECOND),
    lambda config: Transformer(config).to(SECOND),
    lambda config: Transformer(config, device=SECOND).to(dtype=np.float64),
], ids=["made there", "moved there", "of another type"])  # fmt: skip
def test_all_arrays_of_a_model_are_where_it_is(made):
    model = made(small_config())
    arrays = arrays_of(model, StrictArray)
    assert len(arrays) > 2 * len(model.parameters())
    assert {x._device for x in arrays} == {1}


def test_it_trains_there_to_the_end_and_validates_in_one_thread(tmp_path, monkeypatch):
    threads, translate = [], Translator.translate

    def noted(self, *args, **options):
        threads.append(self.workers.threads)
        return translate(self, *args, **options)

    monkeypatch.setattr(Translator, "translate", noted)
    recipe = tiny_recipe(tmp_path, shards=2, accelerate=False)
    trainer = tiny_trainer(recipe, tmp_path / "run", device=SECOND)
    before = to_host(trainer.model.flat.data)
    trainer.train()
    assert {x._device for x in arrays_of([trainer.model, trainer.optimizer], StrictArray)} == {1}
    assert (to_host(trainer.model.flat.data) != before).any()
    assert set(threads) == {1}
    assert trainer.workers.count == 1
    assert tiny_trainer(recipe, tmp_path / "run", device=SECOND).step == trainer.step > 0


def test_on_gpus_a_run_has_the_shards_it_was_begun_with_there_and_one_if_begun_on_cores(tmp_path):
    """Many small shards keep cores busy, and a GPU waiting."""
    recipe = tiny_recipe(tmp_path, shards=3)

    def shards(folder, device):
        return tiny_trainer(recipe, tmp_path / folder, device=device).stepper.num_shards

    assert [shards("cores", device) for device in (CPU, SECOND, CPU)] == [3, 1, 3]
    assert [shards("gpu", device) for device in (SECOND, SECOND, CPU)] == [3, 3, 3]


@pytest.fixture
def second_gpu():
    try:
        second = select_device("cuda:1")
        select_device("cuda:0")
    except DeviceError as error:
        pytest.skip(str(error))
    return second


@pytest.mark.gpu
def test_on_cupy_it_trains_there_as_on_numpy_and_translates_from_any_thread(second_gpu, tmp_path):
    recipe = tiny_recipe(tmp_path, shards=1, dropout=0.0, subword_dropout=0.0)
    losses = []
    for device in (CPU, second_gpu):
        run = RunFolder(tmp_path / device.name.replace(":", "-"))
        trainer = tiny_trainer(recipe, run.path, device=device)
        trainer.train()
        losses.append([entry["nll"] for entry in run.log.entries()])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    arrays = arrays_of([trainer.model, trainer.optimizer], second_gpu.xp.ndarray)
    assert len(arrays) > 2 * len(trainer.model.parameters())
    assert {x.device.id for x in arrays} == {1}

    sentences = (tmp_path / "validation.source").read_text().splitlines()
    here, there = (Translator.load(run.path, device) for device in ("cpu", second_gpu))
    assert in_a_thread(lambda: there.translate(sentences)) == here.translate(sentences)


@pytest.mark.parametrize("threads", [1, 2])
def test_it_translates_there_from_any_thread(tmp_path_factory, threads):
    translator = Translator.load(train_once(tmp_path_factory), "cpu", accelerate=False)
    translator = Translator(translator.model.to(SECOND), translator.vocabulary, threads=threads)
    assert in_a_thread(lambda: translator.translate(GERMAN)) == ENGLISH
