"""What pip installs. (An editable installation would hide that a file is left out.)"""

from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_file_that_is_no_code_is_installed():
    config = ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    patterns = config["options.package_data"].items()
    installed = {
        path
        for package, several in patterns
        for pattern in several.split(", ")
        for path in ROOT.glob(f"{package.replace('.', '/')}/{pattern}")
    }
    files = {
        path
        for path in (ROOT / "minitransformer").rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert files, "there are recipes and kernels"
    assert installed == files
