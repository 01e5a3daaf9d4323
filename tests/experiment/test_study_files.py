"""Study files: what they mean, and what is said of those that mean nothing."""

from dataclasses import replace

import pandas as pd
import pytest

from setconv.errors import ParameterError
from setconv.experiment.cells import build_method
from setconv.experiment.study import (
    PUBLISHED,
    MethodSpec,
    SplitRule,
    built_in_studies,
    read_studies,
    read_study,
)

WHOLE = """
title: A comparison
about: >
  On two
  lines.
split: {parts: 60/40, repeats: 4}
metrics: [auc, f1]
seed: 7
encoder: {kind: tfidf, n_components: 20}
search: {folds: 5, metric: auc}
probe: {post_sizes: [100, 200], draws: 3}
timeout: 60
data:
  tweets: {load: file, path: tweets.csv, text: text, label: label, binary: [crash, fire]}
  swept: {load: npz, path: a.npz, sweep: {majority: 100, ratios: [1, 10]}}
  events: {load: npz, path: a.npz, group: event, split: {leave_out: crash}, source: tweets}
methods:
  SetConv: {ours: true}
  small: {method: SetConv, parameters: {n_members: 1}}
  forest: {estimator: sklearn.ensemble.RandomForestClassifier, search: {max_depth: [2, null]}}
"""


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        (tmp_path / "mine.yaml").write_text(text, encoding="utf-8")
        return read_study(tmp_path / "mine.yaml")

    return read_text


def minimal(**changes):
    entries = {"data": "{a: {load: npz, path: a.npz}}", "methods": "[SetConv]", **changes}
    return "\n".join(f"{name}: {value}" for name, value in entries.items() if value is not None)


def test_a_study_file_says_everything_that_a_study_is(read):
    study = read(WHOLE)
    assert (study.name, study.seed, study.timeout) == ("mine", 7, 60)
    assert study.split == SplitRule((60, 40), 4)
    assert study.metrics == ("auc", "f1")
    assert (study.search.folds, study.search.metric) == (5, "auc")
    assert (study.probe.post_sizes, study.probe.draws) == ((100, 200), 3)
    tweets, one, ten, events = study.data
    assert tweets.binary == ("crash", "fire")
    assert tweets.options == {"path": "tweets.csv", "text": "text", "label": "label"}
    assert [one.name, ten.name] == ["swept, ratio 1", "swept, ratio 10"]
    assert (ten.train_ratio, ten.train_majority, ten.base) == (10, 100, "swept")
    assert study.rule(events) == SplitRule((70, 30), 10, "crash")
    assert study.rule(tweets) == study.split
    assert study.ours == ["SetConv"]
    assert [build_method(method, 0) is not None for method in study.methods] == [True] * 3


@pytest.mark.parametrize("name", built_in_studies())
def test_a_built_in_study_can_be_read_and_its_methods_built(name):
    for study in read_studies(name):
        for method in study.methods:
            build_method(method, 0)
        assert study.title
        assert study.about


def test_the_class_counts_of_the_paper_are_those_of_its_text():
    counts = pd.read_csv(PUBLISHED / "class_counts.csv", comment="#", index_col="dataset")["rows"]
    cities = [one.name for one in read_study("paper-binary-incidents").data]
    assert counts[cities].sum() == 22_170
    assert counts[[f"{city} (four classes)" for city in cities]].sum() == 20_638
    sentiment = [one.name for one in read_study("paper-binary-sentiment").data]
    assert counts[[name for name in sentiment if name.startswith("Amazon")]].sum() == 109_858
    ratios = [round(counts[name].max() / counts[name].min(), 2) for name in sentiment]
    assert ratios == [9.75, 7.11, 6.24, 5.38]


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("data: [", ""),
        ("- 1", ""),
        (minimal(data=None), "data"),
        (minimal(metrcs="[auc]"), "'metrics'"),
        (minimal(metrics="[aux]"), "'auc'"),
        (minimal(seed="yes"), "a whole number"),
        (minimal(split="70/40"), "70/30"),
        (minimal(split="{repeats: 0}"), "repeats"),
        (minimal(split="60/10/30"), ""),
        (minimal(methods="SetConv"), "a list"),
        (minimal(methods="[]"), ""),
        (minimal(methods="[SMOTE, SetConv, SMOTE]"), "methods has 'SMOTE' twice"),
        (minimal(methods="{SMOTE: , SetConv: , SMOTE: }"), "'SMOTE' is given twice"),
        (minimal(methods="{a: {metod: SetConv}}"), "'method'"),
        (minimal(search="{metric: precision}"), ""),
        (minimal(data="{a: {path: x}}"), "'load'"),
        (minimal(data="{a: {load: npz, sweep: {ratio: [1]}}}"), "'ratios'"),
        (minimal(published="table5"), "'table4'"),
        (minimal(studies="[stand-ins]"), "'data'"),
        (minimal(timeout="9" * 400), "a number"),
        (minimal(seed="9" * 5000), "no YAML"),
        (minimal(title="2020-13-45"), "no YAML"),
        (minimal(data="[[1]]"), "names"),
        (minimal(data="[{a: digits}]"), "names"),
        ("a: &a [*a]", "line 1: write out what *a"),
        ("&a {data: *a}", "*a"),
        ("a: &a [x]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(30)), "line 2"),
        ("[" * 100_000, "line 1: nested too deeply"),
        ("{a: " * 3000, "nested too deeply"),
        ("".join(" " * n + "a:\n" for n in range(500)), "nested too deeply"),
        ("title: " + "x" * 300_000, "larger than 256 KB"),
    ],
)
def test_a_file_that_means_nothing_is_refused_with_what_may_be_meant(read, text, near):
    with pytest.raises(ParameterError) as caught:
        read(text)
    assert near in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "near"),
    [
        (MethodSpec("SetConf"), "'SetConv'"),
        (MethodSpec("SetConv", parameters={"n_member": 2}), "'n_members'"),
        (MethodSpec("SMOTE", search={"sampler__k_neighbors": 3}), "sampler__k_neighbors"),
        (MethodSpec("x", estimator="sklearn.nothing.Here"), "sklearn.nothing"),
        (MethodSpec("x", estimator="pathlib.Path"), "scikit-learn"),
    ],
)
def test_a_method_that_does_not_exist_is_refused(spec, near):
    with pytest.raises(ParameterError) as caught:
        build_method(spec, 0)
    assert near in str(caught.value)


def test_a_study_is_found_by_its_name_or_its_file_and_may_be_several(tmp_path):
    (tmp_path / "mine.yaml").write_text(minimal(), encoding="utf-8")
    (tmp_path / "both.yml").write_text("studies: [mine.yaml, paper-multiclass]", encoding="utf-8")
    names = [one.name for one in read_studies(tmp_path / "both.yml")]
    assert names == ["mine", "paper-multiclass"]
    for name, error in (
        ("stand-inns", ParameterError),
        ("stand-ins", ParameterError),  # has several
        (tmp_path / "nothing.yaml", FileNotFoundError),
    ):
        with pytest.raises(error):
            read_study(name)


def test_a_file_that_lists_itself_is_refused(tmp_path):
    for name, other in (("a", "b"), ("b", "a"), ("c", "c")):
        (tmp_path / f"{name}.yaml").write_text(f"studies: [{other}.yaml]", encoding="utf-8")
    for name in ("a", "c"):
        with pytest.raises(ParameterError, match="lists itself"):
            read_studies(tmp_path / f"{name}.yaml")


def test_a_study_can_be_cut_down_to_some_data_sets_and_methods(read):
    study = read(WHOLE)
    swept = study.choose(("swept",), ("small",))
    assert [one.name for one in swept.data] == ["swept, ratio 1", "swept, ratio 10"]
    assert [one.name for one in swept.methods] == ["small"]
    assert study.choose() == study
    with pytest.raises(ParameterError):
        replace(study, data=study.data * 2)
    with pytest.raises(ParameterError) as caught:
        study.choose(("tweet",))
    assert "'tweets'" in str(caught.value)
