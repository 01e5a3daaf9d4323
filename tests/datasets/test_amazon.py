"""Amazon reviews as McAuley's group publishes them: JSON or Python literals, plain or gzip."""

import gzip
import json
import logging
import tracemalloc
from collections import Counter

import pytest

from setconv.datasets.amazon import load_amazon
from setconv.errors import DataError, ParameterError


def review(number, stars, **changes):
    """A review with the keys of the files of 2014."""
    return {
        "reviewerID": f"A{number % 3}",
        "asin": f"000{number % 5}",
        "reviewerName": 'J. "Mac" O\'Neil',
        "reviewText": f"It's text {number}\nwith a caf\u00e9",
        "overall": float(stars),
        **changes,
    }


@pytest.fixture
def make(tmp_path):
    def write(*lines, name="reviews_Books_5.json"):
        path = tmp_path / name
        raw = [line if isinstance(line, bytes) else line.encode() for line in lines]
        data = b"".join(line + b"\n" for line in raw)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def many(good, bad, neutral=0):
    """Lines of so many reviews, mixed."""
    stars = [5] * good + [1] * bad + [3] * neutral
    order = sorted(range(len(stars)), key=lambda number: number * 7919 % 104729)
    return [json.dumps(review(number, stars[number])) for number in order]


@pytest.mark.parametrize("form", [json.dumps, repr])
@pytest.mark.parametrize("name", ["reviews_Books_5.json", "reviews_Books_5.json.gz"])
def test_strict_json_and_python_literals_are_read_plain_or_compressed(make, form, name):
    lines = [form(review(number, stars)) for number, stars in enumerate([5, 1, 4, 2])]
    dataset = load_amazon(make(*lines, name=name))
    assert dataset.name == "Amazon Books"
    assert dataset.labels.tolist() == ["positive", "negative", "positive", "negative"]
    assert dataset.texts[1] == "It's text 1\nwith a café"
    assert dataset.ids == ["1", "2", "3", "4"]
    assert not dataset.problems


def test_the_keys_of_2023_are_known_too(make):
    one = {"rating": 5.0, "title": "top", "text": "good", "asin": "B1", "user_id": "U1"}
    assert load_amazon(make(json.dumps(one))).texts == ["good"]


def test_lines_that_are_no_review_are_left_out_and_counted(make, caplog):
    lines = [
        json.dumps(review(0, 5)),
        "",
        json.dumps(review(1, 5))[:40],
        "__import__('os').getcwd()",
        "[1, 2]",
        b'{"overall": 5.0, "reviewText": "caf\xe9"}',
        json.dumps(review(2, 5, overall="many")),
        json.dumps(review(2, 9)),
        json.dumps(review(2, 5, overall=True)),
        json.dumps(review(2, 5, overall=10**400)),
        '{"overall": NaN, "reviewText": "x"}',
        json.dumps(review(3, 5, reviewText=" ")),
        "[" * 100_000,
        json.dumps(review(5, 2)),
    ]
    path = make(*lines)
    for size in (None, 2):
        with caplog.at_level(logging.WARNING, "setconv"):
            dataset = load_amazon(path, size=size)
        assert dataset.ids == ["1", "14"]
        assert dataset.problems.counts == {
            "no rating from 1 to 5: left out": 5,
            "neither JSON nor a Python literal of an object: left out": 4,
            "no text: left out": 1,
            "not UTF-8: left out": 1,
        }
        assert dataset.problems.first["not UTF-8: left out"] == ["reviews_Books_5.json, line 6"]
        assert "11 problems" in caplog.text


def test_a_sample_keeps_the_ratio_and_is_a_function_of_its_seed(make):
    path = make(*many(900, 100, neutral=50))
    dataset = load_amazon(path, size=200, seed=3)
    assert dataset.class_counts == {"negative": 20, "positive": 180}
    assert len(set(dataset.ids)) == 200
    assert dataset.ids == load_amazon(path, size=200, seed=3).ids
    assert dataset.ids != load_amazon(path, size=200, seed=4).ids
    everything = load_amazon(path)
    by_line = dict(zip(everything.ids, everything.texts, strict=True))
    assert dataset.texts == [by_line[line] for line in dataset.ids]


def test_every_review_of_a_class_has_the_same_chance(make):
    path = make(*many(40, 20))
    drawn = Counter(one for seed in range(300) for one in load_amazon(path, size=30, seed=seed).ids)
    assert len(drawn) == 60
    assert all(100 < times < 200 for times in drawn.values())


def test_a_sample_larger_than_the_file_is_refused_with_what_there_is(make):
    path = make(*many(30, 7))
    assert load_amazon(path, size=37).ids == load_amazon(path).ids
    with pytest.raises(ParameterError, match="37") as refused:
        load_amazon(path, size=38)
    assert refused.value.parameter == "size"


def test_memory_does_not_grow_with_the_file(make, monkeypatch):
    monkeypatch.setattr("setconv.io.jsonl.BLOCK", 1 << 14)
    lines = [json.dumps(review(number, 5 if number % 9 else 1)) for number in range(1000)]

    def peak(times):
        path = make(*lines * times, name=f"{times}.json.gz")
        tracemalloc.start()
        load_amazon(path, size=50)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(1)  # what is made once and stays
    assert peak(10) < 1.2 * peak(2)


@pytest.mark.parametrize("lines", [(), ("[",), (json.dumps(review(0, 3)),)])
def test_a_file_without_a_usable_review_is_refused(make, lines):
    with pytest.raises(DataError, match="no usable review"):
        load_amazon(make(*lines), size=5)
