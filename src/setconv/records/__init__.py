"""Data files in and out, and what their columns are.

Reading, in bounded memory, of CSV, TSV, JSONL and Parquet, compressed or not::

    with open_records("reviews.csv.gz") as reader:
        sample = reader.sample()
        text = find_text_column(sample)
        label = find_label_column(sample, exclude=[text])
        for table in reader.batches(8192):
            ...

Writing, whole or not at all::

    with open_writer("predictions.parquet") as writer:
        writer.write(table)

`labels_of` makes labels of a column, `feature_columns` and `FeatureEncoder` make a matrix of the
others. Whatever cannot be read is a `DataError`
that says where, with the line's number. It needs ``pip install 'setconv[cli]'``.
"""

from __future__ import annotations

from setconv.needs import needed

with needed("setconv.records", "pyarrow", "cli"):
    import pyarrow  # noqa: F401 - only to see whether it is there

from setconv.records.columns import find_label_column, find_text_column
from setconv.records.features import FeatureEncoder
from setconv.records.formats import FORMATS
from setconv.records.identifiers import feature_columns
from setconv.records.labels import labels_of
from setconv.records.opening import open_records
from setconv.records.reading import RecordReader
from setconv.records.writing import RecordWriter, open_writer

__all__ = [
    "FORMATS",
    "FeatureEncoder",
    "RecordReader",
    "RecordWriter",
    "feature_columns",
    "find_label_column",
    "find_text_column",
    "labels_of",
    "open_records",
    "open_writer",
]
