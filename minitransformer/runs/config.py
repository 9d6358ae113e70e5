"""What config.json of a run folder says: the model's configuration, the recipe, where it began."""

import json

from minitransformer.core.regular_file import read_regular
from minitransformer.models.registry import config_of
from minitransformer.runs.attachments import save_bytes
from minitransformer.runs.checkpoint import RunError
from minitransformer.runs.checkpoint.fields import require_fields
from minitransformer.runs.paths import RUNS, RunPaths

MOST = 10**6  # bytes


class RunConfig(RunPaths):
    """The configuration in a run folder."""

    def save_config(self, model_config, recipe, begun_on="cpu"):
        """Write the configuration of the model, the recipe, a dict, and ``"cpu"`` or ``"cuda"``."""
        sections = {"model": model_config.as_dict(), "recipe": recipe, "begun_on": begun_on}
        save_bytes(self.config, f"{json.dumps(sections, indent=1)}\n".encode())

    def load_config(self):
        """The configuration of the model and the recipe, a dict.

        Raises:
            RunError: this is no run folder, or its configuration is damaged.
            OSError: config.json is no file to be read: see :func:`read_regular`.
        """
        config, recipe, _ = self._loaded_config()
        return config, recipe

    def begun_on(self):
        """``"cpu"`` or ``"cuda"``, where the run was begun; it raises as :meth:`load_config`.

        Runs that do not say count as begun on a CPU.
        """
        return self._loaded_config()[2]

    def _loaded_config(self):
        try:
            sections = json.loads(read_regular(self.config, MOST).decode())
            require_fields(self.config, sections, model=dict, recipe=dict)
            begun_on = "cuda" if sections.get("begun_on") == "cuda" else "cpu"
            return config_of(sections["model"]), sections["recipe"], begun_on
        except FileNotFoundError as error:
            missing = "it has no config.json" if self.path.is_dir() else "there is no such folder"
            usual = RUNS / self.path
            hint = f"; did you mean {usual}?" if (usual / self.config.name).is_file() else ""
            raise RunError(f"{self.path} is no run folder: {missing}{hint}") from error
        except (ValueError, TypeError, RecursionError) as error:
            raise RunError(f"{self.config} is damaged: {error}") from error
