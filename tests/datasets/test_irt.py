"""Incident tweets of ten cities: files by city, columns by name, two tasks."""

import gzip
import json
import logging

import pytest

from setconv.datasets.irt import ADDRESS, CITIES, city_named, load_irt
from setconv.errors import DataError, ParameterError

FOUR = [("car on its roof", "Crash"), ("house burns", "fire"), ("shots", "SHOOTING"), ("hi", "No")]
TWO = [("smoke over town", "yes"), ("nice coffee", "no"), ("good morning", "no")]


@pytest.fixture
def make(tmp_path):
    def write(name, rows, columns=("text", "label")):
        path = tmp_path / "irt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        mark = "\t" if ".tsv" in name else ","
        if ".jsonl" in name:
            lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
        else:
            lines = [mark.join(map(str, row)) for row in [columns, *rows]]
        data = "".join(f"{line}\n" for line in lines).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return tmp_path / "irt"

    return write


def test_binary_and_four_class_are_read_from_one_file_of_four_classes(make):
    folder = make("boston.csv", FOUR)
    four = load_irt(folder, city="Boston", task="four_class")
    assert four.labels.tolist() == ["crash", "fire", "shooting", "no"]
    assert four.texts[0] == "car on its roof"
    two = load_irt(folder, city="Boston")
    assert two.labels.tolist() == ["yes", "yes", "yes", "no"]
    assert ADDRESS in two.provenance
    assert "on request" in two.licence


def test_a_city_with_a_file_for_each_task_gives_each_its_own_rows(make):
    make("two_classes/memphis.csv", TWO)
    folder = make("four_classes/memphis.csv", FOUR)
    assert load_irt(folder, city="Memphis").class_counts == {"no": 2, "yes": 1}
    assert load_irt(folder, city="Memphis", task="four_class").n_rows == 4


def test_a_file_with_only_the_neutral_class_belongs_to_both_tasks(make):
    make("memphis_neutral.csv", [("tea", "no")])
    folder = make("memphis_incidents.csv", [("bang", "crash"), ("flames", "fire")])
    assert load_irt(folder, city="Memphis").class_counts == {"no": 1, "yes": 2}
    assert load_irt(folder, city="Memphis", task="four_class").class_counts["no"] == 1


def test_all_cities_are_one_set_with_the_city_as_group(make, caplog):
    make("Boston (USA).tsv", TWO)
    make("new_york_4class.jsonl", FOUR)
    folder = make("SF.csv.gz", TWO)
    with caplog.at_level(logging.WARNING, "setconv"):
        dataset = load_irt(folder, city="all")
    assert dataset.groups.tolist() == ["Boston"] * 3 + ["NYC"] * 4 + ["SF"] * 3
    assert load_irt(folder).texts == dataset.texts
    assert "no tweets of 'Sydney', 'Brisbane', 'Chicago'" in caplog.text


def test_a_column_may_tell_the_city(make):
    rows = [("a", "yes", "London", 7), ("b", "no", "San Francisco", 8), ("c", "no", "Paris", 9)]
    folder = make("tweets.csv", rows, ("Tweet", "class", "city", "tweet_id"))
    dataset = load_irt(folder)
    assert dataset.groups.tolist() == ["London", "SF"]
    assert dataset.ids == ["7", "8"]
    assert str(dataset.problems) == "1 x unknown city: left out (tweets.csv, row 3)"
    assert load_irt(folder, city="London").texts == ["a"]


@pytest.mark.parametrize(
    ("name", "city"),
    [
        ("New York City", "NYC"),
        ("sf4.tsv", "SF"),
        ("transfer.csv", None),
        ("boston_and_london.csv", None),
        *((city, city) for city in CITIES),
    ],
)
def test_a_city_is_known_by_its_common_spellings(name, city):
    assert city_named(name) == city


def test_labels_are_known_in_several_spellings(make):
    yes, no = ["incident related", "1", " YES "], ["not_incident_related", "0", "neutral"]
    folder = make("dublin.tsv", [("x", label) for label in yes + no])
    assert load_irt(folder, city="dublin").labels.tolist() == ["yes"] * 3 + ["no"] * 3


def test_rows_that_cannot_be_used_are_left_out_and_counted(make, caplog):
    folder = make("sydney.csv", [*FOUR, ("", "no"), ("x", "flood"), ("y", ""), ("z", "yes")])
    with caplog.at_level(logging.WARNING, "setconv"):
        dataset = load_irt(folder, city="Sydney", task="four_class")
    assert dataset.n_rows == 4
    assert {kind: tuple(first) for kind, first in dataset.problems.first.items()} == {
        "no text: left out": ("sydney.csv, row 5",),
        "unknown label: left out": ("sydney.csv, row 6",),
        "no label: left out": ("sydney.csv, row 7",),
        "an incident of unknown kind: left out": ("sydney.csv, row 8",),
    }
    assert "4 problems" in caplog.text


def test_the_kind_of_incident_cannot_be_had_from_yes_and_no(make):
    with pytest.raises(DataError):
        load_irt(make("london.csv", TWO), city="London", task="four_class")


def test_an_unknown_city_or_task_is_refused(make):
    folder = make("boston.csv", TWO)
    for wrong in ({"city": "Bostn"}, {"task": "multi"}):
        with pytest.raises(ParameterError) as refused:
            load_irt(folder, **wrong)
        assert {refused.value.parameter} == set(wrong)
    with pytest.raises(DataError, match="'Dublin'"):
        load_irt(folder, city="Dublin")
