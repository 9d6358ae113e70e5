import json

import numpy as np
import pytest
import recurrent

from minitransformer.layers.gru import GRU


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


def test_sides_that_differ_are_not_timed():
    x, dy = np.random.default_rng(0).standard_normal((2, 3, 4, 5))
    ours = recurrent.OurLayer(GRU, x.astype(np.float32), dy.astype(np.float32)).gradients()
    recurrent.check(GRU, ours, ours)
    with pytest.raises(SystemExit, match=r"GRU: the gradient of b_hidden differs by 5\.0e-01"):
        recurrent.check(GRU, ours, ours | {"b_hidden": 2 * ours["b_hidden"]})
