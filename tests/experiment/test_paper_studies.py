"""The paper's studies on files in the published formats, with a BERT of random weights."""

import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from setconv.experiment.cells import StudyWork, plan_cells
from setconv.experiment.data import prepare
from setconv.experiment.study import MethodSpec, built_in_studies, read_study

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "text"))

PAPER = [name for name in built_in_studies() if not name.startswith("stand-ins")]
CITIES = ["Boston", "Sydney", "Brisbane", "Chicago", "Dublin"]
CITIES += ["London", "Memphis", "NYC", "SF", "Seattle"]
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
        reviews = [
            {"asin": str(number), "overall": 1.0 + number % 5, "reviewText": f"book {number}"}
            for number in range(100)
        ]
        text = "".join(f"{json.dumps(one)}\n" for one in reviews)
        path = folder / "amazon" / f"reviews_{category}.json.gz"
        path.write_bytes(gzip.compress(text.encode()))
    official = folder / "semeval2017" / "official"
    official.mkdir(parents=True)
    names = [f"twitter-{part}.txt" for part in ("2013train-A", "2013dev-A", "2013test-A")]
    names += [f"twitter-{part}.txt" for part in ("2015train-A", "2015test-A")]
    names += [f"twitter-{part}.txt" for part in ("2016train-A", "2016dev-A", "2016test-A")]
    for number, name in enumerate(names):
        kinds = ["negative", "neutral", "positive", "positive"] * 5
        lines = [f"{number}{i:04}\t{kind}\tday {kind} {i}" for i, kind in enumerate(kinds)]
        (official / name).write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    from tiny_bert import save_tiny_bert

    return str(save_tiny_bert(tmp_path_factory.mktemp("tiny")))


def small(study, bert):
    """Return the study with what is too large for a test made small; the loaders stay."""
    encoder = {"model": bert, "cache": False, "device": "cpu"}
    if study.encoder.get("kind") == "paper":
        encoder["kind"] = "paper"
    return replace(
        study,
        encoder=encoder,
        methods=(MethodSpec("logistic regression"),),
        split=replace(study.split, repeats=1),
        data=tuple(
            replace(
                one,
                size=None if one.size is None else 60,
                train_majority=None if one.train_majority is None else 20,
            )
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


def test_ten_cities_are_ten_sources(data, bert, tmp_path):
    study = small(read_study("paper-binary-incidents"), bert)
    prepared = prepare(study, tmp_path, data)
    assert len({one.source or one.name for one in study.data}) == 10
    assert all(one.counts == {"no": 20, "yes": 15} for one in prepared.values())


def test_a_sample_of_reviews_is_drawn_while_the_file_is_read(data, bert, tmp_path):
    study = small(read_study("paper-binary-sentiment"), bert).choose(("Amazon-Books",))
    (known,) = prepare(study, tmp_path, data).values()
    assert sum(known.counts.values()) == 60
    assert "60" in known.provenance
