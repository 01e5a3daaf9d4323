"""Members: trained at once yet apart, each without a fold; what their out-of-fold scores decide."""

import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_classification

import setconv.fitting
from setconv.classifier import SetConvClassifier
from setconv.decisions.rule import DecisionRule
from setconv.episodes import EpisodeBatches, Layout
from setconv.metrics.report import report
from setconv.model import BLOCK
from setconv.nn.network import SetConvNetwork
from setconv.pipelines import load
from setconv.training.loop import EpisodeLoss, Feed, Trainer
from setconv.training.optimizer import TrainingSettings

OBJECTIVES = ["balanced", "f1", "mcc", "accuracy", "recall>=0.9", "precision>=0.5"]


def quick(**parameters):
    """A classifier of a few members whose fit takes a moment."""
    small = {"n_members": 3, "encoder": (8,), "out_features": 4, "max_steps": 15, "n_episodes": 2}
    return SetConvClassifier(**{**small, "random_state": 0, "progress": False, **parameters})


def make_rows(n=120, classes=2, seed=0):
    return make_classification(
        n,
        n_features=5,
        n_informative=4,
        n_redundant=0,
        n_classes=classes,
        n_clusters_per_class=1,
        weights=[0.75] if classes == 2 else [0.6, 0.2, 0.2],
        flip_y=0.1,
        random_state=seed,
    )


BINARY = make_rows()
THREE = make_rows(150, classes=3, seed=1)


def fit_and_watch(estimator, X, y, **fit_arguments):
    """Fit; return which rows each member left out as well."""
    seen = []
    leave_out = setconv.fitting.leave_out

    def watch(*arguments):
        seen.append(leave_out(*arguments))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setconv.fitting, "leave_out", watch)
        estimator.fit(X, y, **fit_arguments)
    (left_out,) = seen
    return estimator, left_out


def by_member(clf, rows):
    """Scores as the members give them, (n_rows, members, heads)."""
    raw = clf._model.member_scores(rows)
    return raw.reshape(len(rows), clf._model.network.n_members, clf._model.network.n_heads)


def aligned(clf, rows):
    """The same on one scale."""
    shape = by_member(clf, rows).shape
    raw = clf._model.member_scores(rows)
    return ((raw - clf._model.levels) / clf._model.spreads).reshape(shape)


@pytest.fixture(scope="module")
def binary():
    return fit_and_watch(quick(), *BINARY)


@pytest.fixture(scope="module")
def three():
    return fit_and_watch(quick(), *THREE)


# ------------------------------------------------------------------------------- on one scale


@pytest.mark.parametrize("problem", ["binary", "three"])
def test_alignment_puts_members_on_one_scale(problem, request):
    clf, _ = request.getfixturevalue(problem)
    X = (BINARY if problem == "binary" else THREE)[0]
    scores, raw = aligned(clf, X), by_member(clf, X)
    assert np.ptp(raw.mean(axis=0), axis=0).max() > 1e-3, "there is something to align"
    np.testing.assert_allclose(scores.mean(axis=0), np.tile(raw.mean(axis=(0, 1)), (3, 1)))
    np.testing.assert_allclose(scores.std(axis=0), np.tile(raw.std(axis=0).mean(axis=0), (3, 1)))


def test_the_score_is_the_mean_of_the_aligned_members(binary, three):
    for (clf, _), (X, _) in ((binary, BINARY), (three, THREE)):
        found = clf.predictions(X).scores.reshape(len(X), -1)
        np.testing.assert_allclose(found, aligned(clf, X).mean(axis=1), rtol=1e-12, atol=1e-12)


def test_a_member_of_constant_scores_does_not_spoil_the_others(binary):
    model = binary[0]._model
    kept = model.levels.copy(), model.spreads.copy()
    raw = np.random.default_rng(0).standard_normal((20, 3))
    raw[:, 1] = 4.0
    try:
        model.align(raw)
        assert np.isfinite(model.average(raw)).all()
        assert (model.spreads > 0).all()
    finally:
        model.levels, model.spreads = kept


# -------------------------------------------------------------------------------- out of fold


@pytest.mark.parametrize("n_members", [2, 3, 10])
@pytest.mark.parametrize("data", [BINARY, THREE], ids=["binary", "three"])
def test_out_of_fold_scores_are_by_members_that_left_the_row_out(data, n_members):
    X, y = data
    clf, left_out = fit_and_watch(quick(n_members=n_members), X, y)
    assert left_out.any(axis=0).all()
    evidence = clf._decision.rule.evidence
    members = aligned(clf, X)
    for row in range(len(X)):
        by_hand = members[row, left_out[:, row]].mean(axis=0)
        np.testing.assert_allclose(evidence.scores[row], by_hand, rtol=1e-12, atol=1e-12)
    assert np.array_equal(clf.classes_[evidence.codes], y)


def test_a_member_knows_nothing_of_the_rows_that_it_leaves_out():
    X, y = BINARY
    first, left_out = fit_and_watch(quick(scaling=None), X, y)
    for member in range(3):
        moved = X.copy()
        moved[left_out[member]] += 3.0
        second, again = fit_and_watch(quick(scaling=None), moved, y)
        assert np.array_equal(left_out, again)
        before, after = (by_member(clf, X)[:, :, 0] for clf in (first, second))
        assert np.array_equal(before[:, member], after[:, member])
        others = [other for other in range(3) if other != member]
        assert (np.abs(before - after)[:, others].max(axis=0) > 1e-3).all()


def test_representatives_and_anchors_are_of_a_members_own_rows(binary):
    clf, left_out = binary
    X, y = BINARY
    weights = clf._model.sums.weight.numpy()
    for member, out in enumerate(left_out):
        assert weights[member].tolist() == np.bincount(y[~out]).tolist()
        own = X[~out & (y == 1)]
        np.testing.assert_allclose(clf.anchor_[member], own.mean(axis=0))


@pytest.mark.parametrize(
    ("problem", "objective"),
    [*(("binary", one) for one in OBJECTIVES), ("three", "balanced"), ("three", "recall>=0.9")],
)
def test_the_out_of_fold_report_is_cross_fitted(problem, objective, request):
    clf, left_out = request.getfixturevalue(problem)
    clf.set_objective(objective)
    rule, folds = clf._decision.rule, left_out.argmax(axis=0)
    scores, codes = rule.evidence.scores, rule.evidence.codes
    decided = np.empty(len(codes), dtype=clf.classes_.dtype)
    probabilities = np.empty((len(codes), len(clf.classes_)))
    for fold in range(3):
        here = folds == fold
        others = rule.evidence.part(~here).evened()
        grounds = replace(rule.grounds, evidence=others, train_prior=others.prior)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            said = DecisionRule.choose(grounds, rule.objective).predictions(scores[here])
        decided[here], probabilities[here] = said.labels, said.probabilities
    expected = report(
        clf.classes_[codes],
        decided,
        scores[:, 0] if len(clf.classes_) == 2 else scores,
        probabilities=probabilities,
        classes=clf.classes_,
    )
    assert clf.oof_report_ == expected
    assert clf.report_ == clf.oof_report_
    assert clf.report_source_ == "out_of_fold"


# --------------------------------------------------------------------------- moving the decision


@pytest.mark.parametrize("problem", ["binary", "three"])
def test_a_loaded_model_moves_as_the_saved_one_does(problem, request, tmp_path):
    clf, _ = request.getfixturevalue(problem)
    X = (BINARY if problem == "binary" else THREE)[0]
    n_classes = len(clf.classes_)
    clf.set_objective("balanced").set_prior(None)
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    cost = np.ones((n_classes, n_classes)) * (1 + np.arange(n_classes)) - np.eye(n_classes)
    np.fill_diagonal(cost, 0)
    prior = np.arange(1, n_classes + 1) / sum(range(1, n_classes + 1))
    names = OBJECTIVES if n_classes == 2 else ["mcc", "precision>=0.5"]
    moves = [("set_objective", one) for one in [*names, {"recall": 0.8, "class": 0}, cost]]
    moves += [("set_prior", prior), ("set_objective", "f1"), ("set_prior", None)]
    for move, argument in [*moves, ("set_objective", None), ("set_objective", "f1")]:
        for one in (clf, loaded):
            getattr(one, move)(argument)
        assert np.array_equal(clf.threshold_, loaded.threshold_)
        assert np.array_equal(clf.predict(X), loaded.predict(X))
        assert np.array_equal(clf.predict_proba(X), loaded.predict_proba(X))
        assert np.array_equal(clf.predictions(X).scores, loaded.predictions(X).scores)
        assert clf.oof_report_ == loaded.oof_report_


@pytest.mark.parametrize(
    "objective", [*OBJECTIVES, None, {"recall": 0.8, "class": 0}, [[0.0, 1.0], [9.0, 0.0]]]
)
def test_a_moved_model_is_saved_as_it_stands(objective, binary, tmp_path):
    clf, _ = binary
    X, _ = BINARY
    clf.set_objective("balanced").set_prior([0.9, 0.1])
    clf.set_objective(objective)
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.threshold_ == clf.threshold_
    assert np.array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    assert np.array_equal(loaded.predict(X), clf.predict(X))
    assert loaded.oof_report_ == clf.oof_report_
    clf.set_objective("balanced").set_prior(None)


def test_moving_there_and_back_changes_nothing(binary):
    clf, _ = binary
    X, _ = BINARY
    clf.set_objective("balanced").set_prior(None)
    before = clf.threshold_, clf.predict_proba(X), clf.oof_report_
    clf.set_objective("f1").set_prior([0.99, 0.01]).set_prior(None).set_objective("balanced")
    assert clf.threshold_ == before[0]
    assert np.array_equal(clf.predict_proba(X), before[1])
    assert clf.oof_report_ == before[2]


def test_an_objective_after_the_fit_is_the_one_of_a_fit(binary):
    X, y = BINARY
    moved = binary[0].set_objective("f1")
    fitted = quick(objective="f1").fit(X, y)
    assert moved.threshold_ == fitted.threshold_
    assert moved.oof_report_ == fitted.oof_report_
    assert moved.objective == fitted.objective == "f1"
    moved.set_objective("balanced")


@pytest.mark.parametrize("problem", ["binary", "three"])
def test_a_larger_prior_never_lowers_the_classs_probability(problem, request):
    clf, _ = request.getfixturevalue(problem)
    X = (BINARY if problem == "binary" else THREE)[0]
    n_classes = len(clf.classes_)
    clf.set_objective(1 - np.eye(n_classes))  # the cheapest to move
    for number in range(n_classes):
        previous = np.zeros(len(X))
        for share in (0.001, 0.01, 0.1, 0.3, 0.6, 0.9, 0.999):
            prior = np.full(n_classes, (1 - share) / (n_classes - 1))
            prior[number] = share
            found = clf.set_prior(prior).predict_proba(X)
            np.testing.assert_allclose(found.sum(axis=1), 1)
            assert (found[:, number] >= previous).all()
            previous = found[:, number]
    clf.set_prior(None).set_objective("balanced")


def test_a_prior_moves_what_depends_on_it_and_nothing_else(binary):
    clf, _ = binary
    X, _ = BINARY
    scores = clf.predictions(X).scores
    for objective in ("balanced", "recall>=0.9"):
        clf.set_objective(objective).set_prior(None)
        assert clf.set_prior([0.99, 0.01]).threshold_ == clf.set_prior(None).threshold_
    clf.set_objective("accuracy")
    assert clf.set_prior([0.99, 0.01]).threshold_ > clf.set_prior([0.2, 0.8]).threshold_
    assert np.array_equal(clf.predictions(X).scores, scores)
    clf.set_objective("balanced").set_prior(None)


def test_a_prior_of_one_number_is_that_of_the_rarer_class(binary):
    clf, _ = binary
    X, _ = BINARY
    expected = clf.set_prior([0.9, 0.1]).predict_proba(X)
    clf.set_prior(None)
    assert np.array_equal(clf.set_prior(0.1).predict_proba(X), expected)


# ---------------------------------------------------------------------------- together and alone


def settled(classes, sharing):
    """Three members with rows, anchors, episodes and a network of their own, without dropout."""
    rng = np.random.default_rng(0)
    codes = np.tile(np.arange(classes), 12)
    views = rng.standard_normal((2, len(codes), 4)) + 0.7 * codes[None, :, None]
    members = [np.flatnonzero(np.arange(len(codes)) // classes % 3 != m) for m in range(3)]
    heads = 1 if classes == 2 else classes
    episodes = EpisodeBatches(
        codes,
        classes,
        members=members,
        sharing=sharing,
        support_size=8,
        n_queries=2,
        n_episodes=2,
        query_source="leave_one_out",
        random_state=0,
    )
    network = SetConvNetwork(
        4,
        n_heads=heads,
        n_members=3,
        encoder=(6,),
        out_features=5,
        share_encoder=sharing == "shared",
        generator=torch.Generator().manual_seed(0),
    )
    anchors = torch.from_numpy(rng.standard_normal((3 * heads, 1, 4))).float()
    return torch.from_numpy(views).float(), episodes, network, anchors


def only_member(network, member):
    """A network of one member, with the weights that the member has now."""
    alone = SetConvNetwork(**{**network.spec, "n_members": 1})
    weights = {}
    for name, place in alone.state_dict().items():
        stacked = network.state_dict()[name]
        size = len(stacked) // 3
        weights[name] = stacked[member * size : (member + 1) * size].reshape(place.shape).clone()
    alone.load_state_dict(weights)
    return alone


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("sharing", ["shared", "separate"])
@pytest.mark.parametrize("classes", [2, 3])
def test_members_trained_together_are_those_trained_alone(classes, sharing, weighted):
    views, episodes, network, anchors = settled(classes, sharing)
    heads = network.n_heads
    draws = [episodes.draw() for _ in range(12)]
    row_weights = torch.linspace(0.5, 2, views.shape[1]) if weighted else None
    settings = TrainingSettings(12, lr=0.01, weight_decay=0.01)

    def train(one, rows, its_anchors, its_draws, layout):
        dealt = iter(its_draws)
        stub = SimpleNamespace(draw=lambda: next(dealt))
        halves = np.full((len(its_anchors), 2), 0.5)
        loss = EpisodeLoss(layout, halves, torch.device("cpu"))
        feed = Feed(rows[0].numpy(), lambda _: rows.numpy(), torch.device("cpu"), one.n_members)
        trainer = Trainer(
            one, feed, its_anchors, stub, loss, settings, seed=0, row_weights=row_weights
        )
        return trainer.run().loss

    alone = [only_member(network, member) for member in range(3)]
    start = [one.state_dict()["encoder.0.weight"].clone() for one in alone]
    losses = []
    for member, one in enumerate(alone):
        stacked = slice(member * heads, (member + 1) * heads)
        layout = Layout(*(part[stacked] for part in episodes.layout))
        groups = len(draws[0]) // 3
        own = [draw[member * groups : (member + 1) * groups] for draw in draws]
        if groups == 1:
            own = [draw[0] for draw in own]
        rows = views[[member % len(views)]]
        losses.append(train(one, rows, anchors[stacked], own, layout))
    together = train(network, views, anchors, draws, episodes.layout)
    assert together == pytest.approx(np.mean(losses), rel=1e-4)
    for member, one in enumerate(alone):
        ended = only_member(network, member).state_dict()
        assert not torch.allclose(start[member], ended["encoder.0.weight"], atol=1e-3)
        for name, weight in one.state_dict().items():
            torch.testing.assert_close(ended[name], weight, rtol=1e-3, atol=1e-4)


def test_a_member_scores_as_a_model_of_its_own():
    X, y = BINARY
    clf = quick(scaling=["standard", "normal"]).fit(X, y)
    model = clf._model
    for member in range(3):
        alone = only_member(model.network, member)
        anchors = model.scaled_anchors()[[member]]
        scaled = torch.from_numpy(model.scaler(X)[member % 2])
        sums = model.sums.total[[member]] / model.sums.weight[[member]].unsqueeze(-1)
        with torch.no_grad():
            sides = alone.finish(sums.float())
            rows = alone.finish(alone.prepare(anchors)(alone.encode(scaled)))
            scores = alone.log_temperature.exp() * (rows @ (sides[0, 1] - sides[0, 0]))[0]
        np.testing.assert_allclose(by_member(clf, X)[:, member, 0], scores, rtol=1e-3, atol=1e-4)


# ------------------------------------------------------------------------- all sorts of members


@pytest.mark.parametrize("heads", ["shared", "separate"])
@pytest.mark.parametrize("n_members", [2, 4])
def test_several_classes_with_members_and_weights(heads, n_members):
    X, y = THREE
    weights = np.random.default_rng(0).uniform(0.2, 3, len(y))
    clf = quick(heads=heads, n_members=n_members, max_steps=60, lr=0.01)
    clf.fit(X, y, sample_weight=weights)
    assert clf.representatives_.shape == (n_members, 3, 2, 4)
    assert clf.anchor_.shape == (n_members, 3, 5)
    assert clf.threshold_.shape == (3,)
    assert clf.transform(X).shape == (len(X), n_members * 3 * 4)
    assert len(clf.get_feature_names_out()) == n_members * 3 * 4
    within = weights / (np.bincount(y, weights) / np.bincount(y))[y]
    np.testing.assert_allclose(clf._decision.rule.evidence.weights, within)
    assert clf.oof_report_.macro_auc > 0.7


def test_equal_weights_are_no_weights():
    X, y = THREE
    plain = quick().fit(X, y)
    weighted = quick().fit(X, y, sample_weight=np.full(len(y), 2.0))
    np.testing.assert_allclose(plain.predict_proba(X), weighted.predict_proba(X), atol=1e-6)


def test_rows_of_weight_0_are_not_there():
    X, y = BINARY
    weights = np.ones(len(y))
    weights[:30] = 0
    some, none = quick().fit(X, y, sample_weight=weights), quick().fit(X[30:], y[30:])
    assert np.array_equal(some.predict_proba(X), none.predict_proba(X))
    assert some.oof_report_ == none.oof_report_


@pytest.mark.parametrize("n_members", [2, 10])
def test_thirty_rows(n_members):
    X, y = make_rows(30)
    clf = quick(n_members=n_members).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()
    assert math.isfinite(clf.oof_report_.g_mean)
    assert int(clf.oof_report_.confusion.sum()) == 30


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("n_members", [2, 5])
@pytest.mark.parametrize("rare", [1, 2, 3])
def test_a_class_of_a_few_rows(rare, n_members, classes, tmp_path):
    X, _ = make_rows(50)
    y = np.zeros(50, dtype=int)
    y[:rare] = 1
    if classes == 3:
        y[30:] = 2
    clf, left_out = fit_and_watch(quick(n_members=n_members), X, y)
    assert left_out[:, :rare].any() == (rare > 1)
    assert np.isfinite(clf.predict_proba(X)).all()
    assert np.isfinite(clf.threshold_).all()
    # A class that nobody could leave out is not judged.
    assert int(clf.oof_report_.confusion.sum()) == (50 if rare > 1 else 49)
    assert set(clf.oof_report_.unjudged) == (set() if rare > 1 else {1})
    clf.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict(X), clf.predict(X))


@pytest.mark.parametrize("n_members", [2, 5])
def test_groups_are_kept_together(n_members):
    X, y = BINARY
    groups = np.arange(len(y)) // 6
    _, left_out = fit_and_watch(quick(n_members=n_members, max_steps=1), X, y, groups=groups)
    for group in np.unique(groups):
        assert len(np.unique(left_out[:, groups == group], axis=1).T) == 1
    assert (left_out.sum(axis=0) == 1).all()


def test_groups_of_text_and_early_stopping_go_together():
    X, y = BINARY
    groups = np.array([f"g{number}" for number in np.arange(len(y)) // 6])
    clf, left_out = fit_and_watch(quick(early_stopping=True), X, y, groups=groups)
    assert left_out.shape[1] < len(y)
    assert clf.report_source_ == "out_of_fold"


def test_three_views_with_two_members_are_two_views():
    X, y = BINARY
    clf = quick(n_members=2, scaling=["standard", "normal", "pieces"]).fit(X, y)
    assert [view.kind for view in clf._model.scaler.views] == ["standard", "normal"]
    assert np.isfinite(clf.predict_proba(X)).all()


def test_views_take_turns():
    X, y = BINARY
    clf = quick(n_members=5).fit(X, y)
    assert [view.kind for view in clf._model.scaler.views] == ["standard", "normal", "pieces"]
    network = clf._model.network
    assert network.spec["in_features"] == clf._model.scaler.width(5) == 40
    views = clf._model.scaler(X)
    given = clf._model._to_members(torch.from_numpy(views)).numpy()
    assert all(np.array_equal(given[member], views[member % 3]) for member in range(5))


@pytest.mark.parametrize(
    "parameters",
    [{}, {"heads": "separate"}, {"output": 6}, {"anchor": "kmeans"}, {"n_members": 5}],
    ids=str,
)
@pytest.mark.parametrize("data", [BINARY, THREE], ids=["binary", "three"])
def test_a_prediction_does_not_depend_on_its_batch(data, parameters, monkeypatch):
    X, y = data
    clf = quick(**parameters).fit(X, y)
    many = np.tile(X, (5, 1))  # more than two blocks
    whole = clf.predictions(many).scores
    assert np.array_equal(whole, np.concatenate([clf.predictions(X).scores] * 5))
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(many))[:301]
    assert np.array_equal(clf.predictions(many[chosen]).scores, whole[chosen])
    assert np.array_equal(clf.predict_proba(X[7:8])[0], clf.predict_proba(X)[7])
    for batch in (BLOCK, 2 * BLOCK):
        monkeypatch.setattr("setconv.model.BATCH", batch)
        assert np.array_equal(clf.predictions(many).scores, whole)


def test_the_same_seed_gives_the_same_result_and_another_another():
    X, y = THREE
    one, two, other = (quick(random_state=seed).fit(X, y) for seed in (3, 3, 4))
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    assert np.array_equal(one.threshold_, two.threshold_)
    assert one.oof_report_ == two.oof_report_
    assert one.history_ == two.history_
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))


def test_members_start_from_other_weights_and_see_other_episodes():
    X, y = BINARY
    clf = quick(max_steps=0, scaling="standard").fit(X, y)
    weights = clf.network_.state_dict()["encoder.0.weight"]
    assert not torch.equal(weights[0], weights[1])
    rows = np.arange(40)
    episodes = EpisodeBatches(
        rows % 2,
        2,
        members=[rows, rows],
        sharing="shared",
        support_size=8,
        n_queries=2,
        n_episodes=1,
        query_source="leave_one_out",
        random_state=0,
    )
    first, second = episodes.draw()
    assert not np.array_equal(first, second)


def test_a_subset_for_the_representatives_is_of_a_members_own_rows():
    X, y = BINARY
    clf = quick(post_size=20).fit(X, y)
    weights = clf._model.sums.weight.numpy()
    assert weights.sum(axis=1).tolist() == [20] * 3
    assert (weights >= 1).all()
    moved = X.copy()
    first, left_out = fit_and_watch(quick(post_size=20, scaling=None), X, y)
    moved[left_out[1]] += 3.0
    second = quick(post_size=20, scaling=None).fit(moved, y)
    assert np.array_equal(by_member(first, X)[:, 1], by_member(second, X)[:, 1])


def test_early_stopping_with_members_holds_rows_out_of_all_of_them():
    X, y = BINARY
    clf, left_out = fit_and_watch(
        quick(early_stopping=True, patience=1, max_steps=200, lr=0.03), X, y
    )
    assert left_out.shape == (3, 120 - 12)
    assert clf.n_steps_ < 200
    assert clf.report_source_ == "out_of_fold"
    assert int(clf.oof_report_.confusion.sum()) == 108
    assert len(clf._decision.rule.evidence.codes) == 108
    before = clf.threshold_
    assert clf.set_objective("recall>=0.95").threshold_ < before


def test_validation_rows_are_looked_at_and_no_more():
    X, y = BINARY
    extra = make_rows(40, seed=5)
    clf = quick().fit(X, y, X_val=extra[0], y_val=extra[1])
    assert [one["step"] for one in clf.history_ if "validation" in one] == list(range(1, 16))
    plain = quick().fit(X, y)
    assert np.array_equal(plain.predict(X), clf.predict(X)), "the rule is chosen out of fold"
    assert clf.oof_report_ == plain.oof_report_


def test_one_member_with_validation_rows_has_its_rule_from_them(tmp_path):
    X, y = BINARY
    extra = make_rows(60, seed=5)
    clf = quick(n_members=1, objective="f1").fit(X, y, X_val=extra[0], y_val=extra[1])
    assert np.array_equal(
        clf._decision.rule.evidence.scores[:, 0], clf.predictions(extra[0]).scores
    )
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for one in (clf, loaded):
        one.set_objective("mcc")
    assert loaded.threshold_ == clf.threshold_
    assert loaded.report_ == clf.report_


def test_a_fit_with_fewer_members_forgets_the_last_one():
    X, y = BINARY
    clf = quick().fit(X, y)
    assert hasattr(clf, "oof_report_")
    clf.set_params(n_members=1).fit(X, y)
    assert not hasattr(clf, "oof_report_")
    assert clf.report_source_ == "none"


def test_new_rows_join_the_representatives_of_all_members():
    X, y = BINARY
    clf = quick().fit(X[:100], y[:100])
    before = clf._model.sums.weight.numpy().copy()
    threshold = clf.threshold_
    clf.partial_fit(X[100:], y[100:])
    added = clf._model.sums.weight.numpy() - before
    assert np.array_equal(added, np.tile(np.bincount(y[100:]), (3, 1)))
    assert clf.threshold_ == threshold


# ------------------------------------------------------------------------------------ on disk


def test_a_loaded_model_with_given_anchors_can_be_fitted_again(tmp_path):
    X, y = BINARY
    quick(anchor=X[:2]).fit(X, y).save(tmp_path / "model")
    again = clone(load(tmp_path / "model")).fit(X, y)
    assert again.anchor_.shape == (3, 2, 5)
