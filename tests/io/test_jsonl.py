"""JSONL: one object a line; types, late keys, and what is wrong in which line."""

import json

import pyarrow as pa
import pytest

from setconv.errors import DataError
from setconv.io import jsonl
from setconv.io.records import open_records


@pytest.fixture
def make(tmp_path):
    def write(*lines, name="data.jsonl", encoding="utf-8"):
        path = tmp_path / name
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        path.write_bytes(text.encode(encoding))
        return path

    return write


def table(path):
    with open_records(path, format="jsonl") as reader:
        return reader.read()


def test_numbers_bools_strings_and_lists_keep_their_types(make):
    row = {"i": 1, "f": 0.5, "b": True, "s": "x", "v": [1, 2.5]}
    found = table(make(row, row))
    kinds = [pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.list_(pa.float64())]
    assert found.schema.types == kinds
    assert found.to_pylist() == [row, row]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([{"x": 1}, {"x": 0.5}], [1.0, 0.5]),
        ([{"x": 2**70}], [str(2**70)]),
        (['{"x": "a\\ud83d"}', '{"x": "😀"}'], ["a\ufffd", "😀"]),
        (['{"x": {"\\ud83d": ["\\ud83d"]}}'], ['{"\ufffd": ["\ufffd"]}']),
        ([{"x": 2**63 - 1}, {"x": 0.5}], [2.0**63, 0.5]),
        ([{"x": [2**63 - 1, 0.5]}], [[2.0**63, 0.5]]),
        ([{"x": [2**70]}], [f"[{2**70}]"]),
        (['{"x": 1}\r', "", "  ", '{"x": 2}', ""], [1, 2]),
        ([{"x": 1}, {"y": 2}, {"x": None}], [1, None, None]),
    ],
    ids=[
        "fractions",
        "large",
        "half an emoji",
        "halves inside",
        "rounded",
        "rounded in a list",
        "large in a list",
        "blank lines",
        "missing",
    ],
)
def test_values_of_a_column(make, lines, expected):
    assert table(make(*lines))["x"].to_pylist() == expected


def test_a_key_with_half_an_emoji_is_a_column(make):
    found = table(make('{"a\\ud83d": 1}', {"a\ufffd": 2}, {"b": 3}))
    assert found.to_pydict() == {"a\ufffd": [1, 2, None], "b": [None, None, 3]}


def test_a_key_that_occurs_only_in_the_last_line_is_a_column_of_every_batch(make):
    path = make(*[{"a": n} for n in range(20_000)], {"a": 1, "late": "x"})
    with open_records(path) as reader:
        assert reader.columns == ["a", "late"]
        assert reader.n_rows == 20_001
        tables = list(reader.batches(5000))
    assert {tuple(one.column_names) for one in tables} == {("a", "late")}
    assert tables[0]["late"].null_count == 5000
    assert tables[-1]["late"].to_pylist() == ["x"]


def test_mixed_types_become_strings_and_are_said(make, caplog):
    path = make({"x": "1"}, {"x": 2}, {"x": True}, {"x": None}, {"x": {"y": "é"}})
    assert table(path)["x"].to_pylist() == ["1", "2", "true", None, '{"y": "é"}']
    assert "'x'" in caplog.text


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_the_encoding_is_found(make, encoding):
    assert table(make('{"x": "café"}', encoding=encoding))["x"].to_pylist() == ["café"]


@pytest.mark.parametrize("block", [3, 1 << 20])
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"x": 1}, "", '{"x": 1,, "y": 2}', {"x": 2}], "line 3: not valid JSON (Expecting"),
        ([{"x": 1}, "[1, 2]"], "line 2: not an object"),
        ([{"x": 1}, "null"], "line 2: not an object"),
        ([{"x": 1}, '{"\\ud83d": 1, "\\ud83e": 2}'], "line 2: two keys"),
        (['{"x": ' + "[" * 100_000], "line 1: not valid JSON"),
        ([""], "is empty"),
        (["", ""], "is empty"),
        (["{}", "{}"], "only empty objects"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(make, monkeypatch, block, lines, said):
    monkeypatch.setattr(jsonl, "BLOCK", block)
    with pytest.raises(DataError) as caught:
        table(make(*lines))
    assert said in str(caught.value)
