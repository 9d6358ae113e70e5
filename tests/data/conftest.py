"""What the tests of data share: a network that is none, for corpora that are downloaded."""

from pathlib import Path
from types import SimpleNamespace

import pooch
import pytest
from requests.exceptions import ConnectionError as NoConnection

from minitransformer.data.files import DATA_VARIABLE


@pytest.fixture
def network(monkeypatch, tmp_path):
    """Stands in for the network: the files it has, and the addresses it was asked for.

    No folder is named, the cache is empty, and nobody waits.
    """
    network = SimpleNamespace(files={}, asked=[])

    def download(self, url, output_file, pooch):
        network.asked.append(url)
        name = url.rpartition("/")[2]
        if name not in network.files:
            raise NoConnection("the network is unreachable")
        Path(output_file).write_bytes(network.files[name])

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", download)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "cache" / project)
    monkeypatch.setattr(pooch.get_logger(), "disabled", True)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    return network
