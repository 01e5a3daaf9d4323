"""Texts from everywhere, and errors that name the row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv.errors import DataError, DataTypeError
from setconv.text.encoder import shorten
from setconv.validation import check_texts

TEXTS = ["a dog", "ein Hund", "犬"]


def as_objects(texts):
    return np.array(texts, dtype=object)


def as_pandas(texts):
    return pytest.importorskip("pandas").Series(texts, index=[7, 7, 7])


def as_categories(texts):
    return as_pandas(texts).astype("category")


def as_polars(texts):
    return pytest.importorskip("polars").Series(texts)


def as_arrow(texts):
    return pytest.importorskip("pyarrow").chunked_array([texts[:1], texts[1:]])


@pytest.mark.parametrize(
    "convert",
    [list, tuple, iter, np.array, as_objects, as_pandas, as_categories, as_polars, as_arrow],
)
def test_texts_come_from_any_column(convert):
    assert check_texts(convert(TEXTS)) == TEXTS


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan], ids=str)
def test_missing_texts_are_named_by_their_rows(missing):
    with pytest.raises(DataError, match=r"2 of 4 texts are missing \(rows 1, 3\)"):
        check_texts(["a", missing, "b", missing])


def test_missing_texts_of_frames_are_named_too():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for column in (pd.Series(["a", pd.NA]), pd.Series(["a", None]), pl.Series(["a", None])):
        with pytest.raises(DataError, match=r"1 of 2 texts are missing \(row 1\)"):
            check_texts(column)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (42, r"row 1\); the first is 42 of type int.*str\(\)"),
        (b"bytes", "of type bytes: decode"),
        (["x"], "of type list"),
    ],
)
def test_what_is_no_string_is_named(value, message):
    with pytest.raises(DataTypeError, match=message):
        check_texts(["a", value])


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"])
def test_empty_texts_are_named_by_their_rows(text):
    with pytest.raises(DataError, match=r"7 of 9 texts are empty .*\(rows 1, 2, 3, 4, 5, \.\.\.\)"):
        check_texts(["a", *[text] * 7, "b"])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("a dog", r"a single str .*\[text\] for one"),
        (b"a dog", "a single bytes"),
        ([["a"], ["b"]], "no strings"),
        (np.array([["a"], ["b"]]), "2 dimensions"),
        (np.array("a"), "0 dimensions"),
        ({"a": 1}, "a dict"),
        ({"a"}, "a set"),
        (7, "a int"),
        (None, "a NoneType"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(texts, message):
    with pytest.raises(DataTypeError, match=message):
        check_texts(texts)


def test_a_table_is_refused_and_a_column_asked_for():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        with pytest.raises(DataTypeError, match="one column"):
            check_texts(make({"text": TEXTS}))


def test_no_texts_at_all_are_refused():
    with pytest.raises(DataError, match="no texts"):
        check_texts([])


def test_halves_of_characters_are_joined_or_replaced():
    assert check_texts(["\ud83d\ude00 x", "a\ud83d"]) == ["😀 x", "a\ufffd"]


@given(st.lists(st.text(st.characters(), min_size=1), min_size=1))
def test_any_text_can_be_written_as_utf8_afterwards(texts):
    texts = [f"x{text}" for text in texts]
    for before, after in zip(texts, check_texts(texts), strict=True):
        after.encode()
        if after != before:
            with pytest.raises(UnicodeEncodeError):
                before.encode()


def test_only_texts_that_are_far_too_long_are_cut():
    prose = "word " * 300
    assert shorten(prose, 256) is prose
    assert len(shorten("word " * 500_000, 256)) == 256 * 64
    assert shorten(" " * 10**6 + "a  b", 8) == "a b"
