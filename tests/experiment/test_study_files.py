"""Study files: what they mean, and what is said of those that mean nothing."""

import textwrap

import pytest

from setconv.errors import ParameterError
from setconv.experiment.cells import check_methods
from setconv.experiment.study import (
    DataSpec,
    MethodSpec,
    SplitRule,
    Study,
    built_in_studies,
    parse_study,
    published_counts,
    published_figures,
    read_study,
    read_suite,
)

WHOLE = """
title: A comparison
about: >
  On two
  lines.
split: {parts: 60/10/30, repeats: 4}
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


def parse(text):
    return parse_study(textwrap.dedent(text), "mine", "mine.yaml")


def minimal(**changes):
    entries = {"data": "{a: {load: npz, path: a.npz}}", "methods": "[SetConv]", **changes}
    return "\n".join(f"{name}: {value}" for name, value in entries.items() if value is not None)


def test_a_study_file_says_everything_that_a_study_is():
    study = parse(WHOLE)
    assert (study.name, study.about, study.seed, study.timeout) == ("mine", "On two lines.", 7, 60)
    assert study.split == SplitRule((60, 10, 30), 4)
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
    assert [method.ours for method in study.methods] == [True, False, False]
    check_methods(study)


def test_methods_can_be_a_list_of_names():
    assert [one.name for one in parse(minimal(methods="[SetConv, SMOTE]")).methods] == [
        "SetConv",
        "SMOTE",
    ]


@pytest.mark.parametrize("name", built_in_studies())
def test_a_built_in_study_can_be_read_and_its_methods_built(name):
    for study in read_suite(name).studies:
        check_methods(study)
        assert study.title
        assert study.about


def test_the_studies_that_were_promised_are_built_in():
    assert set(built_in_studies()) >= {
        *("paper-binary-incidents", "paper-binary-sentiment", "paper-multiclass"),
        *("paper-sensitivity", "paper-representatives", "imbalance-sweep", "stand-ins"),
    }


def test_the_published_figures_fit_the_study_that_shows_them():
    study, table = read_study("paper-multiclass"), published_figures("table4")
    assert study.published == "table4"
    assert set(table.unit) == {f"NYC: {label}" for label in study.data[0].report}
    assert len(table) == 3 * 5 * 5
    ours = table[(table.method == "SetConv") & (table.metric == "f1")]
    assert ours["mean"].tolist() == [0.972, 0.912, 0.931]  # fire, shooting, crash


def test_the_class_counts_of_the_paper_are_those_of_its_text():
    cities = [one.name for one in read_study("paper-binary-incidents").data]
    assert sum(sum(published_counts(city, 2).values()) for city in cities) == 22_170
    assert sum(sum(published_counts(city, 4).values()) for city in cities) == 20_638
    sentiment = [one.name for one in read_study("paper-binary-sentiment").data]
    counts = {name: published_counts(name, 2) for name in sentiment}
    amazon = [one for name, one in counts.items() if name.startswith("Amazon")]
    assert sum(sum(one.values()) for one in amazon) == 109_858
    ratios = [round(one["majority"] / one["minority"], 2) for one in counts.values()]
    assert ratios == [9.75, 7.11, 6.24, 5.38]
    assert published_counts("Atlantis", 2) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data: [", "is no YAML"),
        ("- 1", "no mapping"),
        (minimal(data=None), "has no 'data'"),
        (minimal(metrcs="[auc]"), "'metrcs' that means nothing. Did you mean 'metrics'"),
        (minimal(metrics="[aux]"), "no metric 'aux'. Did you mean 'auc'"),
        (minimal(metrics="auc"), "metrics is 'auc': give a list"),
        (minimal(seed="yes"), "seed is True: give a whole number"),
        (minimal(split="70/40"), "split 70/40: give 70/30"),
        (minimal(split="seventy"), "give per cent"),
        (minimal(split="{repeats: 0}"), "repeats=0"),
        (minimal(split="{parts: 60/10/30, leave_out: a}"), "leave_out has no validation"),
        (minimal(methods="SetConv"), "give a list of names"),
        (minimal(methods="[]"), "has no methods"),
        (minimal(methods="{a: {metod: SetConv}}"), "Did you mean 'method'"),
        (minimal(search="{metric: precision}"), "no metric to search by, 'precision'"),
        (minimal(data="{a: {path: x}}"), "data.a has no 'load'"),
        (minimal(data="{a: {load: npz, sweep: {ratio: [1]}}}"), "Did you mean 'ratios'"),
        (minimal(data="{a: {load: npz, sweep: {}}}"), "has no 'ratios'"),
        (minimal(probe="{sizes: [1]}"), "'sizes' that means nothing"),
    ],
)
def test_a_file_that_means_nothing_is_refused_with_what_to_do(text, message):
    with pytest.raises(ParameterError) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (MethodSpec("SetConf"), "no method 'SetConf'. Did you mean 'SetConv'"),
        (MethodSpec("SetConv", parameters={"n_member": 2}), "Did you mean 'n_members'"),
        (MethodSpec("SMOTE", search={"sampler__k_neighbors": 3}), "give a list of values"),
        (MethodSpec("x", estimator="sklearn.nothing.Here"), "cannot be imported"),
        (MethodSpec("x", estimator="Here"), "give module.Class"),
        (MethodSpec("x", estimator="pathlib.Path"), "no scikit-learn estimator"),
    ],
)
def test_a_method_that_does_not_exist_is_refused_before_anything_runs(spec, message):
    study = Study("s", (DataSpec("a", "npz"),), (spec,))
    with pytest.raises(ParameterError) as caught:
        check_methods(study)
    assert message in str(caught.value)


def test_names_cannot_occur_twice():
    data = DataSpec("a", "npz")
    with pytest.raises(ParameterError, match=r"data sets .'a'. twice"):
        Study("s", (data, data), (MethodSpec("SetConv"),))


def test_a_name_that_is_no_study_and_no_file_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="Did you mean 'stand-ins'"):
        read_study("stand-inns")
    with pytest.raises(FileNotFoundError, match=r"no study file .*nothing\.yaml"):
        read_study(tmp_path / "nothing.yaml")


def test_a_suite_has_the_studies_of_files_beside_it(tmp_path):
    (tmp_path / "a.yaml").write_text(minimal(), encoding="utf-8")
    (tmp_path / "both.yaml").write_text("studies: [a.yaml, stand-ins-images]", encoding="utf-8")
    suite = read_suite(tmp_path / "both.yaml")
    assert [one.name for one in suite.studies] == ["a", "stand-ins-images"]
    with pytest.raises(ParameterError, match="is a suite: choose one"):
        read_study(tmp_path / "both.yaml")


def test_a_study_can_be_cut_down_to_some_data_sets_and_methods():
    study = parse(WHOLE)
    assert [one.name for one in study.choose(("swept",), ("small",)).data] == [
        "swept, ratio 1",
        "swept, ratio 10",
    ]
    assert [one.name for one in study.choose((), ("small",)).methods] == ["small"]
    with pytest.raises(ParameterError, match=r"no data set 'tweet'. Did you mean 'tweets'"):
        study.choose(("tweet",))
