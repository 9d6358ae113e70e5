import json

import language_model
import pytest


def test_the_text_is_what_the_standard_library_says_of_itself():
    text = language_model.standard_library_text(20_000)
    assert len(text) == 20_000
    assert text == language_model.standard_library_text(20_000)
    assert text.isascii()
    assert "Return" in text


@pytest.mark.slow
def test_both_sides_learn_the_same_and_the_file_says_what_was_printed(
    tmp_path, capsys, monkeypatch
):
    pytest.importorskip("torch")
    text = language_model.standard_library_text(20_000)
    monkeypatch.setattr(language_model, "standard_library_text", lambda: text)
    monkeypatch.setattr(language_model, "BLOCK", 4)
    file = tmp_path / "result.json"
    assert language_model.main(["--steps", "20", "--json", str(file)]) == 0
    result = json.loads(file.read_text(encoding="utf-8"))
    ours, theirs = result["losses"]
    assert len(ours) == len(theirs) == 20
    assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < 1e-3
    assert ours[-1] < ours[0]
    nll = result["validation_nll"]
    assert nll[0] == pytest.approx(nll[1], abs=1e-3)
    assert capsys.readouterr().out == language_model.table(result) + "\n"
