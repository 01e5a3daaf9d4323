"""CSV and TSV: values, encodings, line ends, and what is wrong in which line."""

import codecs
import gzip
import io
import logging
import random

import pytest

from setconv.errors import DataError, ParameterError
from setconv.io import records as delimited
from setconv.io.records import open_records

PLAIN = "text,label\nhello there,1\nbye,0\n"
ROWS = [{"text": "hello there", "label": "1"}, {"text": "bye", "label": "0"}]


@pytest.fixture
def make(tmp_path):
    def write(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few bytes: every boundary falls somewhere awkward."""
    monkeypatch.setattr(delimited, "BLOCK", 7)


def rows(path, **options):
    with open_records(path, **options) as reader:
        return reader.read().to_pylist()


def refusal(path, **options):
    with pytest.raises(DataError) as caught, open_records(path, **options) as reader:
        reader.read()
    return str(caught.value)


# --------------------------------------------------------------------------------------- values


def test_every_column_is_strings_and_an_empty_field_is_the_empty_string(make):
    with open_records(make("a,b,c\n1,,NA\n2.5,x,null\n")) as reader:
        assert reader.columns == ["a", "b", "c"]
        assert (reader.format, reader.n_rows) == ("csv", None)
        assert [str(kind) for kind in reader.schema.types] == ["string"] * 3
        found = reader.read().to_pylist()
    assert found == [{"a": "1", "b": "", "c": "NA"}, {"a": "2.5", "b": "x", "c": "null"}]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("last", ["", "end"], ids=["without", "with"])
def test_line_ends_of_every_kind_with_and_without_the_last_one(make, end, last):
    content = PLAIN.replace("\n", end)
    assert rows(make(content if last else content.removesuffix(end))) == ROWS


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("field", "text"),
    [
        ('"a, b"', "a, b"),
        ('"say ""hi"""', 'say "hi"'),
        ('"two\nlines"', "two\nlines"),
        ('"cr\r\nlf"', "cr\r\nlf"),
        ('""', ""),
        ('6" pipe', '6" pipe'),
        ("😀👩‍👩‍👧", "😀👩‍👩‍👧"),
        ("مرحبا", "مرحبا"),
    ],
)
def test_fields_of_every_kind(make, field, text):
    assert rows(make(f"text,label\nx,0\n{field},1\n"))[1] == {"text": text, "label": "1"}


def test_blank_lines_are_no_rows(make):
    assert rows(make(f"\n\n{PLAIN}\n\r\n")) == ROWS


def test_a_text_of_two_megabytes_is_one_field(make):
    text = "word, " * 350_000
    assert rows(make(f'text,label\n"{text}",1\nshort,2\n'))[0]["text"] == text


@pytest.mark.parametrize(("mark", "word"), [(";", "semicolon"), ("\t", "tab"), ("|", "bar")])
def test_another_delimiter_of_a_csv_is_found_and_said(make, caplog, mark, word):
    caplog.set_level(logging.INFO, "setconv")
    content = f'"a, b"{mark}c{mark}d\n1,2{mark}3{mark}4\n'
    assert rows(make(content)) == [{"a, b": "1,2", "c": "3", "d": "4"}]
    assert word in caplog.text


def test_a_tsv_is_separated_by_tabs_and_one_column_by_nothing(make):
    assert rows(make("a,b,c\td\n1\t2\n", "data.tsv")) == [{"a,b,c": "1", "d": "2"}]
    assert rows(make('text\n"a, b"\nc\n')) == [{"text": "a, b"}, {"text": "c"}]


# ------------------------------------------------------------------------------------ encodings

WESTERN = "text,label\ncafé “good” €5,1\n"


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "content",
    [
        codecs.BOM_UTF8 + WESTERN.encode(),
        WESTERN.encode("utf-16"),
        codecs.BOM_UTF16_BE + WESTERN.encode("utf-16-be"),
        WESTERN.encode("utf-16-le"),
        WESTERN.encode("utf-16-be"),
        WESTERN.encode("utf-32"),
        WESTERN.encode("cp1252"),
    ],
    ids=["bom", "utf16", "utf16be", "utf16le-bare", "utf16be-bare", "utf32", "cp1252"],
)
def test_the_encoding_is_found(make, content):
    assert rows(make(content)) == [{"text": "café “good” €5", "label": "1"}]


def test_falling_back_to_cp1252_is_a_warning_with_the_line(make, caplog):
    path = make("text,label\nplain,0\ncafé,1\n".encode("latin-1"))
    assert rows(path)[1]["text"] == "café"
    assert "line 3" in caplog.text
    assert "cp1252" in caplog.text
    # Bytes that cp1252 leaves undefined are kept.
    assert rows(make(b"text,label\n\x81\xe9,1\n"))[0]["text"] == "\x81é"


def test_a_given_encoding_is_used_and_not_doubted(make, caplog):
    assert rows(make(WESTERN.encode("utf-16-le")), encoding="utf-16-le")[0]["label"] == "1"
    assert rows(make("text,label\nщит,1\n".encode("cp1251")), encoding="cp1251")[0]["text"] == "щит"
    assert not caplog.text


@pytest.mark.parametrize(
    ("content", "encoding", "line"),
    [
        ("text,label\nété,0\nx,1\n".encode() + b"caf\xe9,1\n", None, "line 4"),
        (b"text,label\nok,1\ncaf\xe9,1\n", "utf-8", "line 3"),
        (b"a,b\n1,2\n3", "utf-16-le", "line 1"),
    ],
    ids=["damaged", "not utf-8", "not utf-16"],
)
def test_text_that_does_not_fit_its_encoding_is_refused_with_the_line(
    make, content, encoding, line
):
    with pytest.raises(DataError) as caught, open_records(make(content), encoding=encoding) as one:
        one.read()
    assert caught.value.parameter == "encoding"
    assert line in str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-88", "hex", "rot13", "a\0", "\ud800", 3])
def test_an_unknown_encoding_is_refused(make, encoding):
    with pytest.raises(ParameterError) as caught:
        open_records(make(PLAIN), encoding=encoding)
    assert caught.value.parameter == "encoding"


# ----------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("\ufeff\n\n", "is empty"),
        ("a,b\n\n\r\n", "2 column names but no rows"),
        ("a,b,a\n1,2,3\n", "columns 1 and 3 are both called 'a'"),
        (",text\n0,x\n", "line 1: column 1 of 2 has no name"),
        ("a,b,c\n1,2,3\n4;5;6\n", "line 3: 1 field where the first line has 3: '4;5;6'"),
        ('text,label\n"one\ntwo\r\nthree",1\n\nx,0\na,b,c\nd,1\n', "line 7: 3 fields"),
        ('text,label\n"fine\n",1\nx,"open, 2\ny,3\n', "line 4: a double quote is opened and never"),
        (
            'text,label\n"lost,1\nplain,0\n"next one",1\nmore,0\n',
            "line 2: the quoted field goes on",
        ),
        ('text,label\n"He said \\"hi\\"",1\n', r'quotes as \": write them as ""'),
    ],
)
@pytest.mark.parametrize("block", [7, 1 << 20])
def test_a_file_that_cannot_be_read_is_refused_with_the_line(
    make, monkeypatch, content, said, block
):
    monkeypatch.setattr(delimited, "BLOCK", block)
    assert said in refusal(make(content))


@pytest.mark.parametrize("block", [5, 64, 1 << 20])
def test_the_line_of_a_ragged_row_is_right_wherever_it_is(make, monkeypatch, block):
    monkeypatch.setattr(delimited, "BLOCK", block)
    generator = random.Random(0)
    for _ in range(20):
        lines = ["a,b\n"]
        lines += generator.choices(["1,2\n", '"x\ny",2\n', "\n", '"q""\r\n",2\r\n', "é,2\n"], k=30)
        where = sum(line.count("\n") for line in lines) + 1
        lines += ["only\n", "1,2\n"]
        assert f"line {where}: 1 field " in refusal(make("".join(lines)))


def test_an_open_quote_does_not_eat_the_memory(make, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK", 1 << 10)
    monkeypatch.setattr(delimited, "LONGEST_RECORD", 1 << 14)
    message = refusal(make('a,b\n1,"2\n' + "3,4\n" * 100_000))
    assert "line 2: a double quote is opened and never closed" in message


def test_a_damaged_gzip_file_is_refused(make):
    whole = gzip.compress(PLAIN.encode() * 1000)
    assert "cut off" in refusal(make(whole[:-20], "data.csv.gz"))
    assert "damaged gzip" in refusal(make(whole[:30] + b"\0" * 20 + whole[50:], "data.csv.gz"))


# ------------------------------------------------------------------------------------ streaming


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_batches_have_the_asked_size_and_all_rows(make, size):
    content = "n\n" + "".join(f"{n}\n" for n in range(100))
    with open_records(make(content)) as reader:
        tables = list(reader.batches(size))
    assert {len(table) for table in tables[:-1]} <= {size}
    assert [int(n) for table in tables for n in table["n"].to_pylist()] == list(range(100))


@pytest.mark.usefixtures("small_blocks")
def test_a_sample_leaves_its_rows_in_place(make):
    content = "n\n" + "".join(f"{n}\n" for n in range(100))
    with open_records(make(content)) as reader:
        assert reader.sample(10)["n"].to_pylist() == [str(n) for n in range(10)]
        assert len(reader.sample(1000)) == 100
        assert len(reader.read()) == 100
        with pytest.raises(DataError, match="read already"):
            reader.read()


def test_standard_input_is_sniffed_and_stays_open(monkeypatch):
    for content, kind in [(PLAIN, "csv"), ('{"text": "x"}\n', "jsonl"), ("a\tb\n1\t2\n", "csv")]:
        for data in (content.encode(), gzip.compress(content.encode())):
            stdin = io.TextIOWrapper(io.BytesIO(data))
            monkeypatch.setattr("sys.stdin", stdin)
            with open_records("-") as reader:
                assert reader.format == kind
                assert (reader.progress() is None) == (kind == "csv")
                assert len(reader.read()) >= 1
            assert not stdin.buffer.closed
