"""JSONL: one object a line; types, late keys, and what is wrong in which line."""

import gzip
import json
import logging

import pyarrow as pa
import pytest

from setconv.errors import DataError
from setconv.io import jsonl
from setconv.io.reading import open_records


@pytest.fixture
def make(tmp_path):
    def write(*lines, name="data.jsonl", encoding="utf-8"):
        path = tmp_path / name
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        path.write_bytes(text.encode(encoding))
        return path

    return write


def table(path):
    with open_records(path) as reader:
        return reader.read()


def refusal(path):
    with pytest.raises(DataError) as caught, open_records(path) as reader:
        reader.read()
    return str(caught.value)


def test_numbers_bools_strings_and_lists_keep_their_types(make):
    row = {"i": 1, "f": 0.5, "b": True, "s": "x", "v": [1, 2.5]}
    found = table(make(row, row))
    kinds = [pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.list_(pa.float64())]
    assert found.schema.types == kinds
    assert found.to_pylist() == [row, row]


def test_whole_numbers_and_fractions_together_are_fractions(make):
    assert table(make({"x": 1}, {"x": 0.5}))["x"].to_pylist() == [1.0, 0.5]


def test_missing_keys_and_nulls_are_missing_values(make):
    found = table(make({"a": 1, "b": None}, {"a": None}, {"b": "x"}))
    assert found.to_pylist() == [
        {"a": 1, "b": None},
        {"a": None, "b": None},
        {"a": None, "b": "x"},
    ]


def test_a_key_that_occurs_only_in_the_last_line_is_a_column_of_every_batch(make, caplog):
    caplog.set_level(logging.INFO, "setconv")
    path = make(*[{"a": n} for n in range(20_000)], {"a": 1, "late": "x"})
    with open_records(path) as reader:
        assert reader.columns == ["a", "late"]
        assert reader.n_rows == 20_001
        tables = list(reader.batches(5000))
    assert {tuple(one.column_names) for one in tables} == {("a", "late")}
    assert tables[0]["late"].null_count == 5000
    assert tables[-1]["late"].to_pylist() == ["x"]
    assert "line 20001" in caplog.text


def test_mixed_types_become_strings_and_are_said(make, caplog):
    path = make({"x": "1"}, {"x": 2}, {"x": True}, {"x": None}, {"x": {"y": "é"}})
    assert table(path)["x"].to_pylist() == ["1", "2", "true", None, '{"y": "é"}']
    assert "several types in 'x'" in caplog.text


def test_numbers_that_are_too_large_keep_their_digits(make):
    assert table(make({"x": 2**70}))["x"].to_pylist() == [str(2**70)]


def test_half_an_emoji_becomes_a_replacement_character(make):
    assert table(make('{"x": "a\\ud83d"}', '{"x": "😀"}'))["x"].to_pylist() == ["a\ufffd", "😀"]


def test_blank_lines_and_line_ends_do_not_matter(make):
    assert len(table(make('{"x": 1}\r', "", "  ", '{"x": 2}', ""))) == 2


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_the_encoding_is_found(make, encoding):
    assert table(make('{"x": "café"}', encoding=encoding))["x"].to_pylist() == ["café"]


@pytest.mark.parametrize("block", [3, 1 << 20])
def test_a_malformed_line_is_named(make, monkeypatch, block):
    monkeypatch.setattr(jsonl, "BLOCK", block)
    message = refusal(make({"x": 1}, "", '{"x": "two\\nlines"}', '{"x": 1,, "y": 2}', {"x": 2}))
    assert "line 4: not valid JSON (Expecting property name" in message
    assert "at character 9" in message
    assert '\'{"x": 1,, "y": 2}\'' in message


@pytest.mark.parametrize(
    ("line", "kind"),
    [("[1, 2]", "a list"), ('"x"', "a string"), ("3", "a number"), ("null", "null")],
)
def test_a_line_that_is_no_object_is_refused(make, line, kind):
    assert f"line 2: {kind} where an object" in refusal(make({"x": 1}, line))


def test_deep_nesting_is_refused_and_not_a_crash(make):
    assert "line 1: not valid JSON" in refusal(make('{"x": ' + "[" * 100_000))


def test_nothing_and_empty_objects_are_refused(make):
    assert "is empty" in refusal(make(""))
    assert "is empty" in refusal(make("", ""))
    assert "only empty objects" in refusal(make("{}", "{}"))


def test_compressed_and_in_batches_it_is_the_same(make, tmp_path):
    path = make(*[{"n": n, "t": f"text {n}"} for n in range(9000)])
    packed = tmp_path / "data.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with open_records(packed) as reader:
        joined = pa.concat_tables(reader.batches(1000))
    assert joined.equals(table(path))
