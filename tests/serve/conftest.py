"""Models of each kind in folders, with rows and what the library says of them."""

import sys
from pathlib import Path

import pandas as pd
import pytest
from small_models import make_rows, small

from setconv import SetConvTableClassifier, SetConvTextClassifier, load

# Helpers that test modules share, and those of other rooms.
sys.path += [str(Path(__file__).parents[1] / room) for room in ("serve", "text", "explain")]
sys.path += [str(Path(__file__).parents[1] / "report")]

from services import Case, make_table
from tiny_bert import make_texts, save_tiny_bert


def quick():
    return small(objective="balanced", n_members=2, max_steps=4)


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def vectors(place):
    X, y = make_rows()
    quick().fit(X, y).save(place / "vectors")
    return Case(place / "vectors", X[:40].tolist(), load(place / "vectors").predictions(X[:40]))


@pytest.fixture(scope="session")
def named(place):
    X, y = make_rows()
    frame = pd.DataFrame(X, columns=[f"f{k}" for k in range(X.shape[1])])
    quick().fit(frame, y).save(place / "named")
    some = frame[:40]
    rows = some.to_dict("records")
    return Case(place / "named", rows, load(place / "named").predictions(some))


@pytest.fixture(scope="session")
def many(place):
    X, y = make_rows(n=400, classes=4, minority=0.3, seed=1)
    quick().fit(X, y).save(place / "many")
    return Case(place / "many", X[:40].tolist(), load(place / "many").predictions(X[:40]))


@pytest.fixture(scope="session")
def table(place):
    rows, labels = make_table()
    model = SetConvTableClassifier(classifier=quick()).fit(rows, labels)
    model.save(place / "table")
    plain = [
        {name: one.isoformat(" ") if name == "day" else one for name, one in row.items()}
        for row in rows[:40].to_pylist()
    ]
    return Case(place / "table", plain, load(place / "table").predictions(rows[:40]))


@pytest.fixture(scope="session")
def texts(place):
    found = make_texts(240)
    labels = ["dog" if "dog" in one.split() else "other" for one in found]
    SetConvTextClassifier("tfidf", quick()).fit(found, labels).save(place / "texts")
    return Case(place / "texts", found[:40], load(place / "texts").predictions(found[:40]))


@pytest.fixture(scope="session")
def encoded(place):
    save_tiny_bert(place / "bert")
    found = make_texts(120)
    labels = ["dog" if "dog" in one.split() else "other" for one in found]
    model = SetConvTextClassifier(str(place / "bert"), quick()).fit(found, labels)
    model.save(place / "encoded")
    return Case(place / "encoded", found[:12], load(place / "encoded").predictions(found[:12]))


@pytest.fixture
def case(request):
    """The case that a test is parametrised with, by name."""
    return request.getfixturevalue(request.param)
