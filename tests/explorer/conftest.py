"""The vocabulary of the models that the page is tried with."""

import pytest
from in_node import small_vocabulary


@pytest.fixture(scope="session")
def vocabulary():
    return small_vocabulary()
