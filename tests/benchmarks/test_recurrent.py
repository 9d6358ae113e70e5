import json

import pytest
import recurrent


@pytest.mark.slow
def test_each_layer_stands_beside_pytorchs_and_the_file_says_what_was_printed(tmp_path, capsys):
    pytest.importorskip("torch")
    file = tmp_path / "result.json"
    sizes = ["--batch", "3", "--length", "4", "--width", "5", "--threads", "1"]
    recurrent.main([*sizes, "--blocks", "2", "--block", "1", "--json", str(file)])
    result = json.loads(file.read_text(encoding="utf-8"))
    assert [row["layer"] for row in result["layers"]] == ["Elman", "GRU", "LSTM"]
    for row in result["layers"]:
        assert min(row["ratio_of_blocks"]) <= row["ratio"] <= max(row["ratio_of_blocks"])
    assert capsys.readouterr().out == recurrent.table(result) + "\n"
