"""Which file is opened, how, and what is said where it cannot be."""

import gzip
import io
import os
import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setconv.errors import DataError, ParameterError
from setconv.io.reading import open_records

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
    "data.jsonl": JSONL,
    "data.ndjson": JSONL,
    "data.parquet": parquet_bytes(),
    "data.pq": parquet_bytes(),
}


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("packed", ["plain", "gz", "gz without the name"])
def test_each_format_is_found_by_name_and_compression_by_its_bytes(tmp_path, name, packed):
    content = CONTENTS[name] if packed == "plain" else gzip.compress(CONTENTS[name])
    path = tmp_path / (name + ".gz" if packed == "gz" else name)
    path.write_bytes(content)
    with open_records(path) as reader:
        assert reader.columns == ["a", "b"]
        assert reader.read().to_pylist() == [{"a": "1", "b": "2"}]
        assert reader.progress() == 1.0


def test_a_format_that_is_given_wins_over_the_name(tmp_path):
    (tmp_path / "data.txt").write_bytes(JSONL)
    with open_records(str(tmp_path / "data.txt"), format="JSONL") as reader:
        assert reader.format == "jsonl"


def test_an_unknown_extension_lists_the_formats(tmp_path):
    for name in ("data.txt", "data", "data.gz", "data.json"):
        (tmp_path / name).write_bytes(CSV)
        with pytest.raises(DataError, match=r"--format csv\|tsv\|jsonl\|parquet"):
            open_records(tmp_path / name)
    (tmp_path / "data.xlsx").write_bytes(b"PK")
    with pytest.raises(DataError, match="Save the sheet as CSV"):
        open_records(tmp_path / "data.xlsx")


def test_what_is_no_text_is_not_taken_as_text(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(parquet_bytes())
    with pytest.raises(DataError, match="holds Parquet data"):
        open_records(path)
    path.write_bytes(b"PK\x03\x04" + b"\0" * 100)
    with pytest.raises(DataError, match="zip archive or an Excel file"):
        open_records(path)


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"format='excel'.*csv, tsv"):
        open_records(tmp_path / "data.csv", format="excel")


def test_a_missing_file_is_named_with_near_ones(tmp_path):
    (tmp_path / "reviews.csv").write_bytes(CSV)
    with pytest.raises(DataError, match=r"Did you mean 'reviews\.csv'\?"):
        open_records(tmp_path / "review.csv")
    with pytest.raises(DataError, match=r"There is no file .*Check the path"):
        open_records(tmp_path / "zzzzzzzzzzz.csv")
    with pytest.raises(DataError, match="There is no folder"):
        open_records(tmp_path / "nowhere" / "review.csv")


def test_a_file_without_permission_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "data.csv"
    path.write_bytes(CSV)

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", denied)
    with pytest.raises(DataError, match=r"no permission.*chmod"):
        open_records(path)


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


def test_it_imports_neither_torch_nor_the_command_line():
    program = (
        "import sys, setconv.io.reading\nassert not {'torch', 'typer', 'rich'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_pyarrow_the_pip_line_is_named():
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from setconv.errors import MissingDependencyError\n"
        "try:\n"
        "    from setconv.io import open_records\n"
        "except MissingDependencyError as error:\n"
        "    assert \"pip install 'setconv[cli]'\" in str(error)\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
