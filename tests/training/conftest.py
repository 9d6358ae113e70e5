"""What the tests of trainings share: a small recipe, with all that is random."""

import pytest
from tiny_run import tiny_recipe


@pytest.fixture(scope="session")
def recipe(tmp_path_factory):
    """Its corpus is not to be written to."""
    return tiny_recipe(tmp_path_factory.mktemp("corpus"))
