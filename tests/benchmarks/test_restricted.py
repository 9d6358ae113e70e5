import pytest
import restricted


def test_the_memory_of_full_attention_grows_faster_than_that_of_restricted_attention():
    result = restricted.measure((256, 512, 1024), window=4, width=8, heads=1, rounds=1)
    assert result["restricted"]["exponents"]["bytes"] == pytest.approx(1, abs=0.05)
    assert result["full"]["exponents"]["bytes"] == pytest.approx(2, abs=0.1)
    facts = {"cpu": "a processor", "blas": "a BLAS", "environment": {}}
    table = restricted.table(result | facts | {"window": 4, "width": 8, "heads": 1})
    assert [line.split()[0] for line in table.splitlines()[4:]] == ["256", "512", "1024", "grows"]


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_is_that_of_the_growth_with_the_length(power):
    points = [{"length": n, "seconds": 3 * n**power} for n in (1, 2, 5)]
    assert restricted.exponent(points, "seconds") == pytest.approx(power)
