import json

import pytest
import report
from report import RESULTS, page


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


def test_the_results_page_says_what_the_json_files_say():
    assert (RESULTS / "README.md").read_text(encoding="utf-8") == page(RESULTS), (
        "run python benchmarks/report.py"
    )


def test_a_changed_figure_changes_the_page(tmp_path):
    store(tmp_path, multi30k=run(1, 40.1))
    first = page(tmp_path)
    assert first == page(tmp_path)
    assert "| multi30k | test_2016_flickr | greedy | 40.1 | 41.1 | 60.0 |" in first
    assert "`minitransformer train multi30k-cpu`" in first
    store(tmp_path, multi30k=run(1, 40.2))
    assert page(tmp_path) != first


def test_runs_that_differ_in_their_seed_have_a_mean(tmp_path):
    store(tmp_path, **{"cpu-seed1": run(1, 40.0), "cpu-seed2": run(2, 41.0), "gpu": run(1, 30.0)})
    text = page(tmp_path)
    assert "| cpu | 2 | test_2016_flickr | beam | 40.50 ± 0.71 | 41.50 ± 0.71 | 60.00 ± 0.00 |" in (
        text
    )
    assert "| gpu | 1 | test" not in text
    assert text.count("- `nrefs:1|case:mixed`") == 1


def test_a_benchmark_is_shown_as_it_was_printed(tmp_path):
    side = dict(name="ours", blas="OpenBLAS", threads="2", tokens_per_second=7380.0)
    side |= dict(seconds_per_step=0.27, gflops=300.0, gemm_peak_gflops=400.0, peak_mb=500.0)
    side |= dict(gemm_peak_share=0.75)
    result = dict(kind="train_step", command="python benchmarks/train_step.py", commit="01234")
    result |= dict(versions={"numpy": "2.4"}, cpu="a processor", cores=2, environment={})
    result |= dict(
        config="tiny", corpus="text", gflop_per_step=88.1, padding=0.05, block=5, steps=10
    )
    result |= dict(agreement={}, ratio=3.28, ratio_of_blocks=[3.1, 3.4], tuned_malloc=False)
    theirs = side | dict(name="PyTorch", tokens_per_second=2250.0)
    theirs |= dict(gemm_peak_gflops=160.0, gemm_peak_share=0.6)
    store(tmp_path, cpu=result | dict(ours=side, theirs=theirs))
    text = page(tmp_path)
    assert "| **3.28** (3.10 to 3.40) | 2.50 · 1.25 | 4.37 | 7,380 / 2,250 | 75% / 60% |" in text
    assert "ratio 3.28, from 3.10 to 3.40 in blocks of 5 steps, 10 in all" in text
    assert "![" not in text
    (tmp_path / "cpu.png").touch()
    assert "![A training step](cpu.png)" in page(tmp_path)


def test_a_file_that_is_no_result_is_named(tmp_path):
    store(tmp_path, stray={"kind": "nonsense"})
    with pytest.raises(SystemExit, match=r"stray\.json is no result.*'nonsense'"):
        page(tmp_path)


def test_the_page_is_written_beside_the_files(tmp_path):
    store(tmp_path, multi30k=run(1, 40.1))
    assert report.main([str(tmp_path)]) == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == page(tmp_path)
