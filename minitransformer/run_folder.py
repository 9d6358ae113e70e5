"""The folder of one training run.

config.json         the model's configuration, and the recipe it was trained by
vocabulary.model    the subwords, a sentencepiece model
metrics.jsonl       one line a log entry, its ``kind`` "train" or "validation"
checkpoints/        step-00001234.npz, all that a resume needs; the newest two
epochs/             epoch-0003.npz, the parameters after an epoch; the last ones and the best
model.npz           the chosen parameters, once the training is done

The process that writes may be killed at any moment. So a file is written under another name first
and then renamed, or, as the metrics are, only ever grows; and config.json, which makes the folder a
run, comes after the vocabulary.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path

from minitransformer.checkpoint import (
    CheckpointError,
    checkpoint_path,
    checkpoints,
    load_checkpoint,
    load_model_arrays,
    model_arrays,
    newest_checkpoint,
    prune,
    save_checkpoint,
)
from minitransformer.config import TransformerConfig


class RunFolder:
    """The paths of a run folder, and what is read from and written to them."""

    def __init__(self, path):
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.vocabulary = self.path / "vocabulary.model"
        self.metrics = self.path / "metrics.jsonl"
        self.checkpoints = self.path / "checkpoints"
        self.epochs = self.path / "epochs"
        self.model = self.path / "model.npz"

    def create(self):
        """Make the folder and those in it, where missing; remove what a killed process left."""
        for folder in (self.checkpoints, self.epochs):
            folder.mkdir(parents=True, exist_ok=True)
        for folder in (self.path, self.checkpoints, self.epochs):
            for leftover in folder.glob("*.tmp"):
                leftover.unlink()

    def save_config(self, model_config, recipe):
        """Write the TransformerConfig and the recipe, a dict."""
        text = json.dumps({"model": asdict(model_config), "recipe": recipe}, indent=1)
        _write_whole(self.config, f"{text}\n".encode())

    def load_config(self):
        """The TransformerConfig and the recipe, a dict.

        Raises:
            CheckpointError: this is no run folder, or its configuration is damaged.
        """
        try:
            sections = json.loads(self.config.read_text(encoding="utf-8"))
            return TransformerConfig(**sections["model"]), sections["recipe"]
        except FileNotFoundError as error:
            missing = "it has no config.json" if self.path.is_dir() else "there is no such folder"
            raise CheckpointError(f"{self.path} is no run folder: {missing}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{self.config} is damaged: {error}") from error

    def save_vocabulary(self, vocabulary):
        """Write a Vocabulary."""
        _write_whole(self.vocabulary, vocabulary.model)

    def log(self, entry):
        """Append one entry to the metrics."""
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, allow_nan=False) + "\n")

    def log_entries(self):
        """All entries of the metrics, as a list of dicts; a last line cut short is left out.

        Raises:
            CheckpointError: another line is damaged.
        """
        if not self.metrics.exists():
            return []
        entries = []
        for number, line in enumerate(self.metrics.read_bytes().split(b"\n")[:-1], start=1):
            try:
                entries.append(json.loads(line))
            except ValueError as error:
                raise CheckpointError(
                    f"{self.metrics}, line {number} is damaged: {error}; remove the line"
                ) from error
        return entries

    def forget_log_after(self, step, epoch):
        """Drop the entries that a run resumed after ``step``, with ``epoch`` epochs done, repeats.

        A validation is told by its epoch: a checkpoint of the same step may come before it.
        """
        if self.metrics.exists():
            done = {"train": ("step", step), "validation": ("epoch", epoch)}
            lines = []
            for entry in self.log_entries():
                counter, last = done[entry["kind"]]
                if entry[counter] <= last:
                    lines.append(json.dumps(entry) + "\n")
            _write_whole(self.metrics, "".join(lines).encode())

    def save_checkpoint(self, arrays, state):
        """Write all that a resume needs, then remove all checkpoints but the newest two."""
        save_checkpoint(checkpoint_path(self.checkpoints, state["step"]), arrays, state)
        prune(self.checkpoints, keep=checkpoints(self.checkpoints)[-2:])

    def load_newest_checkpoint(self):
        """(arrays, state) of the newest whole checkpoint, or None."""
        path = newest_checkpoint(self.checkpoints)
        return load_checkpoint(path) if path else None

    def epoch_file(self, epoch):
        """Where the parameters after ``epoch``, counted from 1, are."""
        return self.epochs / f"epoch-{epoch:04}.npz"

    def save_epoch(self, model, epoch, keep):
        """Write the parameters after ``epoch``; remove those of all others not in ``keep``."""
        save_checkpoint(self.epoch_file(epoch), model_arrays(model), {"epoch": epoch})
        kept = {self.epoch_file(number) for number in (*keep, epoch)}
        for path in set(self.epochs.glob("epoch-*.npz")) - kept:
            path.unlink()

    def load_model(self, model):
        """Load the chosen parameters or, while training, those of the newest checkpoint.

        Returns:
            The path they came from.

        Raises:
            CheckpointError: there are none, or they do not fit the model.
        """
        path = self.model if self.model.exists() else newest_checkpoint(self.checkpoints)
        if path is None:
            raise CheckpointError(f"{self.path} has no model.npz and no whole checkpoint yet")
        arrays, _ = load_checkpoint(path)
        load_model_arrays(model, arrays)
        return path


def _write_whole(path, content):
    """Write a small file that is there whole or not at all, as :func:`save_checkpoint` does."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
