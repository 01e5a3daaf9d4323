"""Which file is opened as records, how, and what is said where it cannot be."""

import gzip
import io
import os
import subprocess
import sys
import threading
import tracemalloc

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setconv.errors import DataError, ParameterError
from setconv.io.records import open_records

CSV = b"a,b\n1,2\n"
JSONL = b'{"a": "1", "b": "2"}\n'


def parquet_bytes():
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"a": ["1"], "b": ["2"]}), sink)
    return sink.getvalue().to_pybytes()


CONTENTS = {
    "data.csv": CSV,
    "data.tsv": CSV.replace(b",", b"\t"),
    "DATA.CSV": CSV,
    "data.ndjson": JSONL,
    "data.pq": parquet_bytes(),
    "parquet.csv": parquet_bytes(),
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("packed", ["plain", "gz", "gz without the name"])
def test_each_format_is_found_by_name_and_what_is_no_text_by_its_bytes(tmp_path, name, packed):
    content = CONTENTS[name] if packed == "plain" else gzip.compress(CONTENTS[name])
    path = tmp_path / (name + ".gz" if packed == "gz" else name)
    path.write_bytes(content)
    with open_records(path) as reader:
        assert reader.columns == ["a", "b"]
        assert reader.read().to_pylist() == [{"a": "1", "b": "2"}]
        assert reader.progress() in (1.0, None)


def test_a_format_that_is_given_wins_over_the_name(tmp_path):
    (tmp_path / "data.txt").write_bytes(JSONL)
    with open_records(str(tmp_path / "data.txt"), format="JSONL") as reader:
        assert reader.format == "jsonl"


def test_an_unknown_format_is_refused(tmp_path):
    for name in ("data.txt", "data", "data.gz", "data.xlsx"):
        (tmp_path / name).write_bytes(CSV)
        with pytest.raises(DataError) as caught:
            open_records(tmp_path / name)
        assert caught.value.parameter == "format"
    for wrong in ("excel", 3):
        with pytest.raises(ParameterError) as caught:
            open_records(tmp_path / "data.csv", format=wrong)
        assert caught.value.parameter == "format"
    with pytest.raises(DataError, match="A path is expected"):
        open_records(None)
    (tmp_path / "data.csv").write_bytes(b"PK\x03\x04" + b"\0" * 100)
    with pytest.raises(DataError, match="zip archive or an Excel file"):
        open_records(tmp_path / "data.csv")


def test_a_file_that_cannot_be_opened_is_refused(tmp_path):
    (tmp_path / "reviews.csv").write_bytes(CSV)
    for name, said in (
        ("review.csv", r"Did you mean 'reviews\.csv'\?"),
        ("zzzzzzzzzzz.csv", "There is no file"),
        ("nowhere/review.csv", "There is no folder"),
        ("a\0.csv", "cannot be opened"),
        ("\ud800.csv", "cannot be opened"),
        ("x" * 5000, "cannot be opened"),
    ):
        with pytest.raises(DataError, match=said):
            open_records(tmp_path / name)


def test_a_pipe_without_a_telling_name_is_sniffed(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[JSONL])
    writer.start()
    with open_records(path) as reader:
        assert reader.format == "jsonl"
        assert len(reader.read()) == 1
    writer.join()


def test_parquet_from_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(parquet_bytes())))
    with open_records("-") as reader:
        assert reader.format == "parquet"
        assert reader.read().to_pylist() == [{"a": "1", "b": "2"}]


def test_fifty_megabytes_of_compressed_csv_stream_in_a_fraction_of_that(tmp_path):
    path = tmp_path / "data.csv.gz"
    rows = b"".join(
        b'%d,"a text of some words, ""quoted"", number %d",label\n' % (n, n) for n in range(10_000)
    )
    times = 50_000_000 // len(rows) + 1
    # A gzip file may be made of many, one after the other.
    member = gzip.compress(rows, 1)
    path.write_bytes(gzip.compress(b"id,text,label\n") + member * times)
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    tracemalloc.start()
    try:
        with open_records(path) as reader:
            held = [(len(table), pool.bytes_allocated() - before) for table in reader.batches()]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(count for count, _ in held) == 10_000 * times
    assert peak < 25 << 20
    assert max(size for _, size in held) < 25 << 20


def test_it_imports_neither_torch_nor_the_command_line_and_names_what_it_needs():
    program = (
        "import sys, setconv.io.opening, setconv.io.sources\n"
        "assert not {'torch', 'typer', 'rich'} & set(sys.modules)\n"
        "for name in [n for n in sys.modules if n.startswith(('pyarrow', 'setconv.io.s'))]:\n"
        "    sys.modules[name] = None\n"
        "from setconv.errors import MissingDependencyError\n"
        "try:\n"
        "    from setconv.io import open_records\n"
        "except MissingDependencyError as error:\n"
        "    assert \"pip install 'setconv[cli]'\" in str(error)\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
