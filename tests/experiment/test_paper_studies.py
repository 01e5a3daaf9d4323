"""The paper's studies on files in the published formats, with a BERT of random weights."""

import gzip
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from setconv.experiment.cells import StudyWork, plan_cells
from setconv.experiment.data import prepare
from setconv.experiment.study import MethodSpec, built_in_studies, read_study

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "text"))

PAPER = [name for name in built_in_studies() if not name.startswith("stand-ins")]
CITIES = [one.name for one in read_study("paper-binary-incidents").data]
YEARS = {2013: ("train", "dev", "test"), 2015: ("train", "test"), 2016: ("train", "dev", "test")}
TWEETS = [f"{year}{part}" for year, parts in YEARS.items() for part in parts]
WORDS = {"crash": "car", "fire": "house", "shooting": "shots", "no": "coffee"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    (folder / "irt").mkdir()
    labels = ["crash"] * 5 + ["fire"] * 6 + ["shooting"] * 4 + ["no"] * 20
    for city in CITIES:
        lines = [f"{WORDS[label]} {number},{label}" for number, label in enumerate(labels)]
        (folder / "irt" / f"{city}.csv").write_text("\n".join(["text,label", *lines]))
    (folder / "amazon").mkdir()
    for category in ("Books", "Electronics", "Movies_and_TV"):
        text = "".join(
            f'{{"asin": "{n}", "overall": {1.0 + n % 5}, "reviewText": "book {n}"}}\n'
            for n in range(100)
        )
        path = folder / "amazon" / f"reviews_{category}.json.gz"
        path.write_bytes(gzip.compress(text.encode()))
    official = folder / "semeval2017" / "official"
    official.mkdir(parents=True)
    for number, name in enumerate(TWEETS):
        kinds = ["negative", "neutral", "positive", "positive"] * 5
        lines = [f"{number}{i:04}\t{kind}\tday {kind} {i}" for i, kind in enumerate(kinds)]
        (official / f"twitter-{name}-A.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    from tiny_bert import save_tiny_bert

    return str(save_tiny_bert(tmp_path_factory.mktemp("tiny")))


def small(study, bert):
    """Return the study with what is too large for a test made small; the loaders stay."""
    kind = {name: value for name, value in study.encoder.items() if value == "paper"}
    return replace(
        study,
        encoder={"model": bert, "cache": False, "device": "cpu", **kind},
        methods=(MethodSpec("logistic regression"),),
        split=replace(study.split, repeats=1),
        data=tuple(
            replace(one, size=one.size and 60, train_majority=one.train_majority and 20)
            for one in study.data
        ),
    )


@pytest.mark.parametrize("name", PAPER)
def test_a_study_of_the_paper_runs_on_its_data(name, data, bert, tmp_path):
    study = small(read_study(name), bert)
    prepared = prepare(study, tmp_path, data)
    cells = plan_cells(study, prepared, tmp_path)
    assert {cell.dataset for cell in cells} == {one.name for one in study.data}
    figures, notes = StudyWork(study, prepared, tmp_path)(cells[0])
    assert any(key.startswith("auc:") for key in figures)
    assert sum(notes["rows"]) > 30
