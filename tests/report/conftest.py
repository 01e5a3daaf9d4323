"""Models and pages that the tests of the report share."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "explain"))
sys.path.insert(0, str(Path(__file__).parent))

from judging import make_cases
from reading import HOSTILE
from text_models import TextModel, write_texts

from setconv.classifier import SetConvClassifier
from setconv.pipelines import SetConvTextClassifier
from setconv.report.page import make_report


@pytest.fixture(scope="session")
def text_page():
    known, (texts, labels) = write_texts(240), write_texts(200, seed=1)
    constant = np.full(len(labels), "calm"), np.zeros(len(labels))
    return make_report(
        TextModel().fit(*known),
        texts,
        labels,
        train=known,
        baselines={"always calm": constant, "no scores": (labels, None)},
        data_name="reports.csv",
    )


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
    )


@pytest.fixture(scope="session")
def copied():
    """Texts of which some are copies, but for case and space, with their model."""
    texts, labels = write_texts(120)
    texts = [f"{text} no{row}" for row, text in enumerate(texts)]
    for row in range(0, 24, 2):
        texts[row + 60] = f"  {texts[row].upper()} "
        labels[row + 60] = labels[row]
    labels[[0, 2, 60, 62]] = ["calm", "fire", "calm", "fire"]
    small = {"n_members": 3, "max_steps": 30, "random_state": 0, "progress": False}
    model = SetConvTextClassifier("tfidf", SetConvClassifier(**small)).fit(texts, labels)
    return model, texts, labels


@pytest.fixture(scope="session")
def cases():
    """Models, rows and pages of many kinds, by name."""
    return make_cases()
