"""Models and pages that the tests of the report share."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "explain"))
sys.path.insert(0, str(Path(__file__).parent))

from reading import HOSTILE
from text_models import TextModel, write_texts

from setconv.report.page import make_report


@pytest.fixture(scope="session")
def text_model():
    return TextModel().fit(*write_texts(240))


@pytest.fixture(scope="session")
def unseen():
    return write_texts(200, seed=1)


@pytest.fixture(scope="session")
def text_page(text_model, unseen):
    texts, labels = unseen
    constant = np.full(len(labels), "calm"), np.zeros(len(labels))
    return make_report(
        text_model,
        texts,
        labels,
        train=write_texts(240),
        baselines={"always calm": constant, "no scores": (labels, None)},
        data_name="reports.csv",
        n_bootstrap=200,
    )


@pytest.fixture(scope="session")
def multiclass_page(fitted_multiclass, multiclass):
    X, y = multiclass
    return make_report(fitted_multiclass, X, y, n_bootstrap=100)


@pytest.fixture(scope="session")
def hostile_page():
    """Every text that a user can give is an attack."""
    texts, labels = write_texts(160)
    labels = np.where(labels == "fire", f"fire {HOSTILE}", f"calm {HOSTILE}")
    texts = [f"{text} {HOSTILE}" for text in texts]
    model = TextModel().fit(texts, labels)
    wrong = labels.copy()
    wrong[:8] = labels[::-1][:8]
    return make_report(
        model,
        texts,
        wrong,
        title=HOSTILE,
        data_name=HOSTILE,
        baselines={HOSTILE: (labels, None)},
        row_names=[f"{HOSTILE}{row}" for row in range(len(texts))],
        explain=lambda rows: f"{HOSTILE} {len(rows)}",
        n_bootstrap=20,
    )
