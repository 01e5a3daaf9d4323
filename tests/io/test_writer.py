"""Files that are written whole or not at all, and read back as they were."""

import csv
import errno
import io
import json
import os
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setconv.errors import DataError
from setconv.io import records as delimited
from setconv.io.records import open_records
from setconv.io.writer import open_writer

TABLE = pa.table({"text": ["a", "b, c"], "n": [1, 2], "p": [0.25, 1e-7]})
NAMES = [
    f"out.{kind}{packed}" for kind in ("csv", "tsv", "jsonl", "parquet") for packed in ("", ".gz")
]

# No test of speed: the machine may be busy, and each example writes the same file anew.
SOME = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

# Any text that UTF-8 can hold, with the characters that CSV trips over more often than not.
texts = st.text(st.one_of(st.sampled_from('",;\t\r\n=\\\0 é😀'), st.characters(codec="utf-8")))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(path, *tables, format=None, error=None):
    with open_writer(path, format=format) as writer:
        for table in tables:
            writer.write(table)
        if error is not None:
            raise error
    return writer.n_rows


def read(path, **options):
    with open_records(path, **options) as reader:
        return reader.read()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_back_and_the_same_rows_give_the_same_bytes(tmp_path, name):
    assert write(tmp_path / name, TABLE, TABLE.slice(1)) == 3
    content = (tmp_path / name).read_bytes()
    assert (content[:2] == b"\x1f\x8b") == name.endswith(".gz")
    found = read(tmp_path / name)
    assert found["text"].to_pylist() == ["a", "b, c", "b, c"]
    assert [int(n) for n in found["n"].to_pylist()] == [1, 2, 2]
    assert [float(p) for p in found["p"].to_pylist()] == [0.25, 1e-7, 1e-7]
    write(tmp_path / name, TABLE, TABLE.slice(1))
    assert (tmp_path / name).read_bytes() == content
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
@given(rows=st.lists(st.tuples(texts, texts), min_size=1, max_size=20))
@SOME
def test_any_text_comes_back_as_it_was(tmp_path, kind, rows):
    path = tmp_path / f"out.{kind}"
    table = pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]})
    write(path, table)
    assert read(path, encoding=None if kind == "parquet" else "utf-8").equals(table)
    if kind == "csv":
        with path.open(encoding="utf-8", newline="") as file:
            assert list(csv.reader(file)) == [["a", "b"], *map(list, rows)]


@given(rows=st.lists(texts, min_size=1, max_size=20), block=st.integers(1, 40))
@SOME
def test_a_single_column_of_any_text_comes_back_whatever_the_blocks(tmp_path, rows, block):
    path = tmp_path / "out.csv"
    write(path, pa.table({"text": rows}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited, "BLOCK", block)
        assert read(path, encoding="utf-8")["text"].to_pylist() == rows


def test_quotes_are_only_where_they_are_needed(tmp_path):
    write(
        tmp_path / "out.csv",
        pa.table({"the text": ["=1+1", 'say "hi"', None], "label": [1, 0, None]}),
    )
    content = (tmp_path / "out.csv").read_text()
    assert content == 'the text,label\n=1+1,1\n"say ""hi""",0\n,\n'


def test_values_that_text_has_no_form_for(tmp_path):
    table = pa.table({"v": [[1.0, 2.0]], "x": [float("nan")]})
    write(tmp_path / "out.csv", table)
    assert (tmp_path / "out.csv").read_text() == 'v,x\n"[1.0, 2.0]",nan\n'
    write(tmp_path / "out.jsonl", table)
    assert json.loads((tmp_path / "out.jsonl").read_text()) == {"v": [1.0, 2.0], "x": None}
    with pytest.raises(DataError) as caught:
        write(tmp_path / "bytes.csv", pa.table({"b": [b"\xff\xfe"]}))
    assert caught.value.column == "b"


# ------------------------------------------------------------------------------- whole or nothing


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_earlier_file_and_nothing_else(tmp_path, name, error):
    (tmp_path / name).write_bytes(b"before")
    with pytest.raises(error):
        write(tmp_path / name, TABLE, error=error)
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"before"


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk_is_said_and_leaves_nothing(tmp_path, monkeypatch, name):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError, match="disk is full"):
        write(tmp_path / name, TABLE)
    assert names(tmp_path) == []


def test_an_error_of_the_caller_stays_what_it_is(tmp_path):
    with pytest.raises(PermissionError):
        write(tmp_path / "out.csv", TABLE, error=PermissionError("not ours"))


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "results").mkdir()
    with pytest.raises(DataError, match=r"no folder .*result\. Did you mean 'results'\?"):
        write(tmp_path / "result" / "out.csv", TABLE)
    with pytest.raises(DataError, match="is a folder"):
        write(tmp_path / "results", TABLE, format="csv")
    with pytest.raises(DataError) as caught:
        write(tmp_path / "out.txt", TABLE)
    assert caught.value.parameter == "format"
    assert names(tmp_path) == ["results"]


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "out.csv"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as other:
        content = other.submit(pipe.read_bytes)
        write(pipe, TABLE)
        assert content.result().startswith(b"text,n,p\n")
    assert pipe.is_fifo()


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.csv").write_bytes(b"before")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write(tmp_path / "link.csv", TABLE)
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_bytes().startswith(b"text,")


# ------------------------------------------------------------------------------------ what fits


@pytest.mark.parametrize(
    "tables",
    [
        [TABLE, pa.table({"x": [1]})],
        [pa.table({"x": pa.array([0.5], pa.float32())}), pa.table({"x": ["word"]})],
        [],
    ],
    ids=["other columns", "other types", "no rows"],
)
def test_tables_that_make_no_file_are_refused(tmp_path, tables):
    with pytest.raises(DataError):
        write(tmp_path / "out.parquet", *tables)
    assert names(tmp_path) == []


def test_types_are_those_of_the_first_table(tmp_path):
    first = pa.table({"x": pa.array([0.5], pa.float32())})
    write(tmp_path / "out.parquet", first, pa.table({"x": [1, 2]}))
    assert read(tmp_path / "out.parquet").schema == first.schema


@pytest.mark.parametrize("kind", [None, "tsv", "jsonl", "parquet"])
def test_standard_output_gets_the_bytes_and_stays_open(monkeypatch, tmp_path, kind):
    stdout = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr("sys.stdout", stdout)
    write("-", TABLE, format=kind)
    assert not stdout.buffer.closed
    path = tmp_path / f"out.{kind or 'csv'}"
    path.write_bytes(stdout.buffer.getvalue())
    assert read(path)["text"].to_pylist() == ["a", "b, c"]


# ----------------------------------------------------------------------------------- formulas


def test_formulas_are_escaped_in_text_only_if_asked(tmp_path):
    cells = ["=1+1", "+49 30", "-x", "@a", "\tb", "\rc", "-5", "+2.5e3", "- 5", "a=b", "", None]
    table = pa.table({"=name": cells, "number": [-float(n) for n in range(len(cells))]})
    escaped = ["'=1+1", "'+49 30", "'-x", "'@a", "'\tb", "'\rc", "-5", "+2.5e3", "'- 5", "a=b"]
    for name, asked in (("a.csv", False), ("b.csv", True), ("c.tsv", True), ("d.jsonl", True)):
        with open_writer(tmp_path / name, escape_formulas=asked) as writer:
            writer.write(table)
        changed = asked and name != "d.jsonl"
        with open_records(tmp_path / name) as reader:
            assert reader.columns == ["'=name" if changed else "=name", "number"]
            found = reader.read()
            assert found[reader.columns[0]].to_pylist()[:10] == (escaped if changed else cells[:10])
            assert float(found["number"][3].as_py()) == -3
