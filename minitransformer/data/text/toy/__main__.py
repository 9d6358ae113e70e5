"""``python -m minitransformer.data.text.toy FOLDER`` writes the toy corpus as text files."""

import argparse
from pathlib import Path

from minitransformer.data.text.toy import toy_corpus


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m minitransformer.data.text.toy",
        description="Write the toy corpus as text, one sentence a line.",
    )
    parser.add_argument("folder", type=Path, help="where to, datasets/toy in this repository")
    folder = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in toy_corpus().items():
        for language, sentences in zip(("de", "en"), zip(*pairs, strict=True), strict=True):
            text = "".join(f"{sentence}\n" for sentence in sentences)
            (folder / f"{split}.{language}").write_bytes(text.encode())


if __name__ == "__main__":
    main()
