"""Texts from everywhere, and errors that name the row."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv.errors import DataError, DataTypeError
from setconv.validation import check_texts

TEXTS = ["a dog", "ein Hund", "犬"]


def as_categories(texts):
    return pd.Series(texts, index=[7, 7, 7], dtype="category")


def as_chunks(texts):
    return pa.chunked_array([texts[:1], texts[1:]])


@pytest.mark.parametrize(
    "convert", [list, tuple, iter, np.array, pd.Series, as_categories, pl.Series, as_chunks]
)
def test_texts_come_from_any_column(convert):
    assert check_texts(convert(TEXTS)) == TEXTS


@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["a", None, "b", float("nan")], DataError),
        (pd.Series(["a", pd.NA]), DataError),
        (pl.Series(["a", None]), DataError),
        (["a", *["\u3000\n\t"] * 7], DataError),
        *((["a", value], DataTypeError) for value in (42, b"bytes", ["x"], np.arange(2))),
    ],
    ids=str,
)
def test_what_is_missing_empty_or_no_string_is_named_by_its_row(texts, error):
    with pytest.raises(error) as caught:
        check_texts(texts)
    assert (type(caught.value), caught.value.row) == (error, 1)


@pytest.mark.parametrize(
    "texts",
    [
        *("a dog", np.array([["a"], ["b"]]), {"a": 1}, None),
        *(make({"text": TEXTS}) for make in (pd.DataFrame, pl.DataFrame, pa.table)),
    ],
    ids=lambda texts: type(texts).__name__,
)
def test_what_holds_no_texts_is_refused(texts):
    with pytest.raises(DataTypeError):
        check_texts(texts)
    with pytest.raises(DataError):
        check_texts([])


@given(st.lists(st.text(st.characters(), min_size=1), min_size=1))
def test_any_text_can_be_written_as_utf8_afterwards(texts):
    texts = [f"x{text}" for text in texts]
    for before, after in zip(texts, check_texts(texts), strict=True):
        after.encode()
        if after != before:
            with pytest.raises(UnicodeEncodeError):
                before.encode()
