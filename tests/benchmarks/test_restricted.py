import pytest
import restricted


def test_the_memory_of_full_attention_grows_faster_than_that_of_restricted_attention():
    for _ in range(2):  # what coverage notes of lines that are new to it is memory, too
        result = restricted.measure((256, 512, 1024), window=4, width=8, heads=1, rounds=1)
    assert result["restricted"]["exponents"]["bytes"] == pytest.approx(1, abs=0.05)
    assert result["full"]["exponents"]["bytes"] == pytest.approx(2, abs=0.1)
    facts = {"cpu": "a processor", "blas": "a BLAS", "environment": {}}
    table = restricted.table(result | facts | {"window": 4, "width": 8, "heads": 1})
    assert [line.split()[0] for line in table.splitlines()[4:]] == ["256", "512", "1024", "grows"]
