"""Whether a built package, sdist and wheel, holds the files of the checkout: all, and as they are.

    python tests/house/compare_package.py FOLDER

An editable installation would hide that one is left out. The wheel was built from the sdist.
"""

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main(folder):
    ours = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for path in (ROOT / "minitransformer").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    (sdist,), (wheel,) = Path(folder).glob("*.tar.gz"), Path(folder).glob("*.whl")
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2]: member for member in archive if member.isfile()}
        compare(sdist, ours, {n: archive.extractfile(m).read() for n, m in names.items()})
    with zipfile.ZipFile(wheel) as archive:
        compare(wheel, ours, {name: archive.read(name) for name in archive.namelist()})


def compare(package, ours, theirs):
    theirs = {name: text for name, text in theirs.items() if name.startswith("minitransformer/")}
    different = {name for name in ours.keys() | theirs if ours.get(name) != theirs.get(name)}
    if different:
        sys.exit(f"{package.name} and the checkout differ in {', '.join(sorted(different))}")
    print(f"{package.name}: {len(theirs)} files, as they are here")


if __name__ == "__main__":
    main(*sys.argv[1:])
