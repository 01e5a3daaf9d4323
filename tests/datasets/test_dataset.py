"""The object that every loader returns: its rows, its classes, and smaller sets made of it."""

import logging

import numpy as np
import pytest

from setconv.datasets.dataset import SHOWN, Dataset, Problems
from setconv.errors import DataError, LabelError, ParameterError


def made(*counts, **given):
    """A data set with so many rows of the classes a, b, c ...; its texts are its row numbers."""
    labels = np.repeat(list("abcdef"[: len(counts)]), counts)
    rows = [str(row) for row in range(len(labels))]
    return Dataset(**{"name": "toy", "texts": rows, "features": None, "labels": labels, **given})


@pytest.mark.parametrize(
    "change", [{"texts": None}, {"features": np.ones((3, 1))}, {"ids": ["1"]}, {"labels": []}]
)
def test_parts_that_do_not_fit_together_are_refused(change):
    with pytest.raises(DataError):
        made(1, 2, **change)


def test_rows_are_taken_with_all_that_belongs_to_them():
    given = {"ids": list("wxyz"), "groups": np.array([5, 6, 7, 8])}
    dataset = made(2, 2, **given)
    numbers = made(2, 2, texts=None, features=np.arange(8).reshape(4, 2), **given)
    assert numbers.take([3, 0]).features.tolist() == [[6, 7], [0, 1]]
    for rows in ([3, 0], np.array([True, False, False, True])):
        taken = dataset.take(rows)
        order = np.argsort(taken.ids)
        assert [taken.texts[row] for row in order] == ["0", "3"]
        assert taken.labels[order].tolist() == ["a", "b"]
        assert taken.groups[order].tolist() == [5, 8]
        assert sorted(taken.ids) == ["w", "z"]


def test_one_class_or_several_against_the_rest():
    dataset = made(3, 2, 1)
    assert dataset.binary("c").class_counts == {"c": 1, "not c": 5}
    assert dataset.binary("c").imbalance_ratio == 5
    assert dataset.binary(["b", "c"]).class_counts == {"b+c": 3, "not b+c": 3}


def test_an_unknown_class_or_no_rest_is_refused():
    dataset = made(1, 1, labels=np.array(["crash", "fire"]))
    for wrong in ("crush", ["crash", "fire"], []):
        with pytest.raises(LabelError):
            dataset.binary(wrong)


def test_a_subsample_keeps_the_shares_and_is_a_function_of_its_seed():
    dataset = made(70, 20, 10)
    drawn, again, other = (dataset.subsample(20, seed) for seed in (0, 0, 1))
    assert drawn.class_counts == {"a": 14, "b": 4, "c": 2}
    assert len(set(drawn.texts)) == 20
    assert drawn.labels.tolist() == [dataset.labels[int(row)] for row in drawn.texts]
    assert drawn.texts == again.texts != other.texts


@pytest.mark.parametrize("size", [1, 16, 0, 2.5, True])
def test_a_size_that_cannot_be_drawn_is_refused(size):
    with pytest.raises(ParameterError) as refused:
        made(12, 3).subsample(size)
    assert refused.value.parameter == "size"


def test_problems_are_counted_by_kind_and_the_first_are_named(caplog):
    problems = Problems()
    problems.warn("toy")
    assert not problems
    assert not caplog.records
    for line in range(1, 21):
        problems.add("no text: left out", "a.tsv", line)
    problems.add("no id: left out", "b.tsv", 3, "row")
    with caplog.at_level(logging.WARNING, "setconv"):
        problems.warn("toy")
    assert problems
    assert problems.counts == {"no text: left out": 20, "no id: left out": 1}
    assert len(problems.first["no text: left out"]) == SHOWN
    assert "toy: 21 problems" in caplog.text
