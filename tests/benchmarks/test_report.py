import json
import shutil
from pathlib import Path

import pytest
import report
from report import page


def run(seed, bleu, **changes):
    """The result of a training run, as it is stored."""
    scores = {
        "bleu_cased_13a": bleu,
        "bleu_lowercased": bleu + 1,
        "chrf2": 60.0,
        "signatures": {"bleu_cased_13a": "nrefs:1|case:mixed", "chrf2": "nrefs:1|nc:6"},
    }
    result = {
        "command": "minitransformer train multi30k-cpu",
        "commit": "0123456789abcdef",
        "seed": seed,
        "hardware": "two cores",
        "wall_seconds": 3000.0,
        "epochs": 36,
        "splits": {"test_2016_flickr": {"greedy": scores, "beam": scores}},
    }
    return result | changes


def store(folder, **results):
    for name, result in results.items():
        (folder / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")


def test_a_changed_figure_changes_the_page_which_is_written_beside_the_files(tmp_path):
    store(tmp_path, multi30k=run(1, 40.1))
    first = page(tmp_path)
    assert first == page(tmp_path)
    assert "| multi30k | test_2016_flickr | greedy | 40.1 | 41.1 | 60.0 |" in first
    assert "`minitransformer train multi30k-cpu`" in first
    store(tmp_path, multi30k=run(1, 40.2))
    assert page(tmp_path) != first
    assert report.main([str(tmp_path)]) == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == page(tmp_path)


def test_runs_that_differ_in_their_seed_have_a_mean(tmp_path):
    store(tmp_path, **{"cpu-seed1": run(1, 40.0), "cpu-seed2": run(2, 41.0), "gpu": run(1, 30.0)})
    text = page(tmp_path)
    assert "| cpu | 2 | test_2016_flickr | beam | 40.50 ± 0.71 | 41.50 ± 0.71 | 60.00 ± 0.00 |" in (
        text
    )
    assert "| gpu | 1 | test" not in text
    assert text.count("- `nrefs:1|case:mixed`") == 1


def test_ratios_are_split_into_what_the_blas_gives_and_what_we_make_of_it():
    result = json.loads((report.RESULTS / "train-step-tiny.json").read_text(encoding="utf-8"))
    result |= dict(ratio=3.28, ratio_of_blocks=[3.1, 3.4])
    result["ours"] |= dict(tokens_per_second=7380.0, gemm_peak_gflops=400.0, gemm_peak_share=0.75)
    result["theirs"] |= dict(tokens_per_second=2250.0, gemm_peak_gflops=160.0, gemm_peak_share=0.6)
    row = "| **3.28** (3.10 to 3.40) | 2.50 · 1.25 | 4.37 | 7,380 / 2,250 | 75% / 60% |"
    assert row in report.ratios({Path("cpu.json"): result})


def test_a_picture_beside_a_result_is_shown(tmp_path):
    shutil.copy(report.RESULTS / "scaling.json", tmp_path)
    assert "![" not in page(tmp_path)
    (tmp_path / "scaling.png").touch()
    assert "![How the time of a step grows](scaling.png)" in page(tmp_path)


def test_a_file_that_is_no_result_is_named(tmp_path):
    store(tmp_path, stray={"kind": "nonsense"})
    with pytest.raises(SystemExit, match=r"stray\.json is no result.*'nonsense'"):
        page(tmp_path)
