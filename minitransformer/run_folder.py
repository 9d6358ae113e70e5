"""The folder of one training run.

config.json         the model's configuration, and the recipe it was trained by
vocabulary.model    the subwords, a sentencepiece model
metrics.jsonl       one line a log entry, its ``kind`` "train" or "validation"
checkpoints/        step-00001234.npz, all that a resume needs; the newest two
epochs/             epoch-0003.npz, the parameters after an epoch; the last ones and the best
model.npz           the chosen parameters, once the training is done
training.lock       while a training is under way; see :mod:`minitransformer.training.lock`

The process that writes may be killed at any moment. So a file is written under another name first
and then renamed, or, as the metrics are, only ever grows; and config.json, which makes the folder a
run, comes after the vocabulary.

What a user keeps in the folder is the user's: a run begins in no folder that holds anything else
than what a run killed before its config.json leaves, and it only ever removes files of exactly the
names that it writes.
"""

import json
import os
import re
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

# What a process killed while it writes leaves, in the folders that it leaves it in.
LEFTOVERS = {
    "": r"(config\.json|vocabulary\.model|metrics\.jsonl|model\.npz\.\d+)\.tmp",
    "checkpoints": r"step-\d{8,}\.npz\.\d+\.tmp",
    "epochs": r"epoch-\d{4,}\.npz\.\d+\.tmp",
}
# What is there before config.json makes the folder a run; both folders are still empty then.
BEFORE_CONFIG = {"training.lock", "vocabulary.model", "vocabulary.model.tmp", "config.json.tmp"}
EMPTY_BEFORE_CONFIG = {"checkpoints", "epochs"}


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

    def require_free(self):
        """Let a new run begin here only if nothing is there, or what one that was killed left.

        Raises:
            CheckpointError: something else is there; says what.
        """
        if self.config.exists():
            raise CheckpointError(f"{self.path} holds a run already")
        if self.path.is_symlink() and not self.path.exists():
            raise CheckpointError(
                f"{self.path} is a link to {self.path.readlink()}, where nothing is"
            )
        if self.path.exists() and not self.path.is_dir():
            raise CheckpointError(f"{self.path} is a file, and a run is a folder")
        inside = self.path.iterdir() if self.path.exists() else []
        others = sorted(path.name for path in inside if not _before_config(path))
        if others:
            held = ", ".join(others[:5]) + (", …" if len(others) > 5 else "")
            raise CheckpointError(
                f"{self.path} is neither empty nor a run: it holds {held}, and no config.json. "
                "If it is a run, put its config.json back; if not, a new run would mix its files "
                "with these"
            )

    def create(self):
        """Make the folder and those in it, where missing; remove what a killed process left."""
        for folder, leftover in LEFTOVERS.items():
            (self.path / folder).mkdir(parents=True, exist_ok=True)
            for path in (self.path / folder).iterdir():
                if re.fullmatch(leftover, path.name) and path.is_file():
                    path.unlink()

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
        """Write a Vocabulary.

        Raises:
            CheckpointError: there is another one.
        """
        if self.vocabulary.exists() and self.vocabulary.read_bytes() != vocabulary.model:
            raise CheckpointError(
                f"{self.vocabulary} is there already, and is not what this training has learned: "
                "move it away, or choose another folder"
            )
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
        """Write the parameters after ``epoch``; remove those of earlier ones not in ``keep``."""
        save_checkpoint(self.epoch_file(epoch), model_arrays(model), {"epoch": epoch})
        for number in set(range(1, epoch)) - set(keep):
            path = self.epoch_file(number)
            if path.is_file():
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


def _before_config(path):
    """Whether this may be in the folder of a run that was killed before it wrote config.json."""
    if path.name in EMPTY_BEFORE_CONFIG:
        return path.is_dir() and not any(path.iterdir())
    return path.name in BEFORE_CONFIG and path.is_file() and not path.is_symlink()


def _write_whole(path, content):
    """Write a small file that is there whole or not at all, as :func:`save_checkpoint` does."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
