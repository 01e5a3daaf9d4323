"""The graph's answers are the model's: in ONNX Runtime, and written down once more in numpy."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from answers import ask, assert_same_answers, make_extremes, set_initialiser
from plain_forward import forward
from scipy import sparse
from small_models import make_rows, preset, small

from setconv.errors import ParameterError
from setconv.export import to_onnx
from setconv.pipelines import SetConvTableClassifier

ROWS = [600, pytest.param(10_000, marks=pytest.mark.long)]

MODELS = {
    "three views": {},
    "normal": {"scaling": "normal"},
    "pieces": {"scaling": "pieces"},
    "two views, the linear part": {"scaling": ["pieces", "standard"], "linear_share": 0.4},
    "one view, the linear part": {"scaling": "standard", "linear_share": 0.4},
    "several anchors": {"anchor": "kmeans", "output": 5},
    "separate heads": {"heads": "separate", "encoder": (6, 8), "anchor": "kmeans"},
    "dot product": {"similarity": "dot"},
    "no encoder": {"encoder": (), "out_features": 16, "n_members": 1, "scaling": "standard"},
    "the paper's rule": {"objective": None},
    "most probable": {"objective": "accuracy"},
    "class weights": {"class_weight": {0: 1, 1: 5}, "objective": "f1"},
}


def make_table(classes, n=900, seed=0):
    """Rows with epoch seconds, numbers of 1e12, and a column of few values."""
    X, y = make_rows(n, classes=classes, minority=0.4, seed=seed)
    X[:, 0] = 1.7e9 + 1e5 * X[:, 0]
    X[:, 1] *= 1e12
    X[:, 2] = np.round(X[:, 2])
    return X, y


def make_new(n):
    X = make_extremes(n)
    X[n // 3 :, 0] = 1.7e9 + 1e5 * X[n // 3 :, 0]
    X[n // 2 :, 1] *= 1e12
    return X


def check(clf, X, **tolerance):
    graph = to_onnx(clf)
    onnx.checker.check_model(graph, full_check=True)
    assert_same_answers(ask(graph, X), clf, X, **tolerance)


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("name", MODELS)
def test_a_graph_decides_as_the_library(name, classes, n):
    check(small(**MODELS[name]).fit(*make_table(classes)), make_new(n))


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("classes", [2, 5])
def test_a_graph_of_embeddings_decides_as_the_library(classes, n):
    X, y = make_rows(900, classes=classes, minority=0.4, features=120)
    clf = small(linear_share=0.3).fit(X.astype(np.float32), y)
    assert len(clf._model.scaler.views) == 1
    check(clf, make_extremes(n, 120).clip(-50, 50).astype(np.float32))


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("name", ["PAPER", "REFERENCE"])
def test_a_graph_of_a_preset_decides_as_the_library(name, classes, n):
    X, y = make_rows(900, classes=classes, minority=0.4)
    clf = preset(name).fit(X, y)
    check(clf, make_rows(n, classes=classes, minority=0.4, seed=1)[0])
    # These look at rows as they are: of 1e12 their own float32 keeps five digits of a score.
    check(clf, make_extremes(n), atol=1e-4)


@pytest.mark.parametrize("n", ROWS)
@pytest.mark.parametrize("classes", [2, 5])
def test_a_table_is_rounded_where_its_encoder_rounds_it(classes, n):
    X, y = make_table(classes)
    table = {f"column {number}": column for number, column in enumerate(X.T)}
    model = SetConvTableClassifier(classifier=small()).fit(table, y)
    new = make_new(n)
    rows = dict(zip(table, new.T, strict=True))
    found = ask(to_onnx(model), new)
    assert_same_answers(found, model, rows)


@pytest.mark.parametrize("classes", [2, 5])
def test_a_moved_decision_a_prior_costs_and_a_bent_calibrator(classes):
    X, y = make_table(classes)
    clf, new = small().fit(X, y), make_new(500)
    cost = np.arange(1, classes + 1)[:, None] * (1 - np.eye(classes))
    for objective in ("f1", "accuracy", cost, "recall>=0.8", None, "balanced"):
        check(clf.set_objective(objective), new)
    prior = np.arange(1.0, classes + 1) / np.arange(1, classes + 1).sum()
    for objective in ("f1", cost):
        check(clf.set_objective(objective).set_prior(prior), new)
    rule = clf._decision.rule
    # More than two classes have one slope.
    bent = replace(rule.calibrator, slopes=(0.4, 2.5) if classes == 2 else (0.7, 0.7))
    clf._decision = replace(clf._decision, rule=replace(rule, calibrator=bent))
    check(clf, new)


def test_only_the_members_that_speak_are_in_the_graph():
    X, y = make_table(2)
    clf = small(n_members=4).fit(X, y, time=np.arange(len(y)))
    assert 0 < clf._model.chosen.sum() < 4
    check(clf, make_new(500))
    for members in ([True, False, False, True], [False, True, False, False]):
        check(clf._only(np.array(members)), make_new(500))


def test_sparse_rows_of_few_columns_come_dense():
    X, y = make_rows(300)
    clf = small().fit(sparse.csr_matrix(X), y)
    assert_same_answers(ask(to_onnx(clf), X), clf, sparse.csr_matrix(X))


@pytest.mark.parametrize(
    ("classes", "given"),
    [
        (2, {"anchor": "kmeans", "output": 5, "linear_share": 0.4}),
        (
            5,
            {
                "heads": "separate",
                "encoder": (6, 8),
                "class_weight": {0: 1, 1: 3, 2: 1, 3: 1, 4: 2},
            },
        ),
        (2, {"similarity": "dot", "encoder": (), "objective": None}),
        (5, {"objective": None, "scaling": ["normal", "pieces"]}),
    ],
)
def test_graph_and_library_are_the_formulas_written_down_once_more(classes, given):
    X, y = make_table(classes)
    clf, new = small(**given).fit(X, y), make_table(classes, 300, seed=5)[0]
    shares, scores = forward(clf._model, clf._decision.rule, new)
    np.testing.assert_allclose(clf.predict_proba(new), shares, rtol=0, atol=1e-5)
    np.testing.assert_allclose(ask(to_onnx(clf), new)["probabilities"], shares, rtol=0, atol=1e-5)
    said = clf.predictions(new).scores
    np.testing.assert_allclose(said.reshape(scores.shape), scores, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("classes", [2, 5])
def test_the_threshold_and_the_prior_in_the_graph_are_those_of_the_model(classes):
    X, y = make_table(classes)
    clf, new = small().fit(X, y), make_new(500)
    graph = to_onnx(clf)
    clf.set_objective("accuracy")
    before = ask(graph, new)
    set_initialiser(graph, "threshold", clf._decision.rule.thresholds)
    after = ask(graph, new)
    assert (before["label"] != after["label"]).any()
    np.testing.assert_array_equal(before["probabilities"], after["probabilities"])
    assert_same_answers(after, clf, new)
    clf.set_objective("balanced")
    prior = np.linspace(1, 2, classes) / np.linspace(1, 2, classes).sum()
    graph = to_onnx(clf)
    set_initialiser(graph, "prior", prior)
    assert_same_answers(ask(graph, new), clf.set_prior(prior), new)


def test_a_view_by_quantiles_makes_nothing_larger_than_the_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(700, 40)), np.arange(700) % 5 == 0
    clf = small(scaling="normal", max_steps=1).fit(X, y)
    graph = onnx.shape_inference.infer_shapes(to_onnx(clf))
    assert len(clf._model.scaler.views[0].knots) == 40 * 500
    inner = [
        [side.dim_value or side.dim_param for side in one.type.tensor_type.shape.dim]
        for one in graph.graph.value_info
        if one.name.startswith(("gather", "greaterorequal", "where", "min"))
    ]
    assert len(inner) > 30
    assert {tuple(shape) for shape in inner} <= {("n", 40), (1, 40)}


@pytest.mark.parametrize("columns", [5000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_sparse_models_of_many_columns_are_refused_with_what_works(columns):
    rows = sparse.random(200, columns, density=20 / columns, format="csr", random_state=0)
    clf = small(max_steps=1).fit(rows, np.arange(200) % 4 == 0)
    with pytest.raises(ParameterError, match=rf"{columns} columns.* What works: setconv predict"):
        to_onnx(clf)
