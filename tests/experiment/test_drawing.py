"""The critical-difference diagram: what is in the file, and that it is whole."""

import sys
from xml.etree import ElementTree

import demsar
import numpy as np
import pandas as pd
import pytest

from setconv.errors import MissingDependencyError, ParameterError
from setconv.experiment import diagram, nemenyi


@pytest.fixture(scope="module")
def comparison():
    return nemenyi(demsar.scores(), higher_is_better=True)


def texts(path):
    found = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(one.itertext()).strip() for one in found]


def test_a_diagram_has_names_ranks_title_and_critical_difference(comparison, tmp_path):
    path = diagram(comparison, tmp_path / "auc.svg", highlight="C4.5+m", title="AUC")
    assert path == tmp_path / "auc.svg"
    found = texts(path)
    assert {"AUC", "CD = 1.25", "1", "2", "3", "4"} <= set(found)
    assert {"C4.5+m  2.00", "C4.5+m+cf  1.96", "2.89  C4.5+cf", "3.14  C4.5"} <= set(found)
    assert [file.name for file in tmp_path.iterdir()] == ["auc.svg"]


def test_the_highlighted_method_is_in_colour(comparison, tmp_path):
    plain = diagram(comparison, tmp_path / "plain.svg").read_text()
    ours = diagram(comparison, tmp_path / "ours.svg", highlight="C4.5+m").read_text()
    assert "#c0392b" not in plain
    assert "#c0392b" in ours


def test_with_few_sources_the_diagram_says_that_nothing_is_claimed(tmp_path):
    few = nemenyi(demsar.scores().iloc[:6], higher_is_better=True)
    found = texts(diagram(few, tmp_path / "few.svg"))
    assert "6 sources: fewer than 10, nothing is claimed" in found
    assert not any(text.startswith("CD") for text in found)


def test_the_same_diagram_is_the_same_file(comparison, tmp_path):
    for form in ("svg", "png", "pdf"):
        one = diagram(comparison, str(tmp_path / f"one.{form}")).read_bytes()
        assert one == diagram(comparison, tmp_path / f"two.{form}").read_bytes()


def test_names_of_any_length_fit_into_the_picture(tmp_path):
    table = pd.DataFrame(
        np.random.default_rng(0).normal(size=(12, 3)), columns=["a" * 90, "b", "c"]
    )
    path = diagram(nemenyi(table), tmp_path / "long.png")
    header = path.read_bytes()[16:24]
    assert int.from_bytes(header[:4], "big") > 7.5 * 200


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("a.jpg", {}, r"must end in \.svg"),
        ("a", {}, r"must end in \.svg"),
        ("a.svg", {"highlight": "ours"}, "choose one of C4.5"),
    ],
)
def test_a_diagram_that_cannot_be_is_refused(comparison, tmp_path, name, parameters, message):
    with pytest.raises(ParameterError, match=message):
        diagram(comparison, tmp_path / name, **parameters)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_error_has_the_pip_line(comparison, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'setconv\[experiment\]'"):
        diagram(comparison, tmp_path / "a.svg")
