"""Beyond a million rows (here: a few): folds by content, keyed decks, sampled evidence."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv import SetConvClassifier, load
from setconv.episodes import EpisodeBatches
from setconv.sampling import (
    KeyedOrder,
    buckets,
    draw_by_class,
    forward_cuts,
    nth_rows,
    row_keys,
    split_rows,
)
from setconv.training.early_stopping import split_validation

seeds = st.integers(0, 2**31)
SIZES = {"support_size": 12, "n_queries": 2, "n_episodes": 3, "query_source": "leave_one_out"}


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr("setconv.sampling.MANY_ROWS", 100)
    monkeypatch.setattr("setconv.fitting.MOST_EVIDENCE", 400)


# ------------------------------------------------------------------------------- keyed orders


@given(st.integers(1, 3000), st.lists(st.integers(0, 2**32), min_size=1, max_size=3))
def test_a_keyed_order_has_every_number_once_and_any_part_by_itself(size, seed):
    order = KeyedOrder(size, seed)
    whole = order(np.arange(size))
    assert sorted(whole.tolist()) == list(range(size))
    some = np.random.default_rng(0).integers(0, size, 20)
    np.testing.assert_array_equal(KeyedOrder(size, seed)(some), whole[some])


def test_a_keyed_order_is_as_random_as_a_shuffle():
    size, n_orders = 24, 4000
    orders = np.stack([KeyedOrder(size, [7, seed])(np.arange(size)) for seed in range(n_orders)])
    # Each number comes equally often to each place; a sum of squares of 23 degrees of freedom a
    # place has a mean of 23 and, over 24 places, stays within 5 of its standard deviations.
    counts = np.stack([np.bincount(column, minlength=size) for column in orders.T])
    squares = ((counts - n_orders / size) ** 2 / (n_orders / size)).sum(axis=1)
    assert abs(squares.mean() - 23) < 5 * np.sqrt(2 * 23 / 24)
    # Neighbours are no more often neighbours than by chance, 2 / size.
    close = (np.abs(np.diff(orders, axis=1)) == 1).mean()
    assert close == pytest.approx(2 / size, abs=0.01)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=300), seeds)
def test_rows_are_found_by_their_rank_among_those_of_a_kind(kinds, seed):
    kinds = np.array(kinds, dtype=np.uint8)
    ranks = np.random.default_rng(seed).integers(0, len(kinds), 50)
    expected = np.argsort(kinds, kind="stable")[ranks]
    np.testing.assert_array_equal(nth_rows(kinds, ranks), expected)


def test_ranks_are_found_across_the_parts_of_a_long_pass(monkeypatch):
    monkeypatch.setattr("setconv.sampling._SCANNED", 7)
    kinds = np.random.default_rng(0).integers(0, 3, 100).astype(np.uint8)
    ranks = np.random.default_rng(1).permutation(100)
    np.testing.assert_array_equal(nth_rows(kinds, ranks), np.argsort(kinds, kind="stable")[ranks])


@pytest.mark.usefixtures("few_are_many")
def test_many_rows_are_drawn_class_by_class_without_a_shuffle_of_all():
    codes = np.random.default_rng(0).choice(3, 1000, p=[0.9, 0.09, 0.01]).astype(np.uint8)
    drawn = draw_by_class(codes, [50, 20, 500], np.random.default_rng(1))
    assert (np.diff(drawn) > 0).all()
    assert np.bincount(codes[drawn]).tolist() == [50, 20, (codes == 2).sum()]


# --------------------------------------------------------------------------------------- splits


@given(st.lists(st.integers(1, 200), min_size=2, max_size=4), st.sampled_from([1, 2, 5, 10]), seeds)
def test_a_split_by_buckets_keeps_copies_together_and_every_class_with_every_member(
    counts, n_members, seed
):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(counts)), counts)).astype(np.uint8)
    content = rng.integers(0, max(2, len(codes) // 3), len(codes))
    split = split_rows(codes, n_members, seed, buckets=buckets(content))
    np.testing.assert_array_equal(split.classes[split.kinds], codes)
    left_out = split.left_out_of(slice(None))
    for one in np.unique(content):  # copies have one fate, also in different classes
        assert (left_out[:, content == one][:, 0] == left_out[:, content == one].T).all()
    for code in range(len(counts)):
        assert not left_out[:, codes == code].all(axis=1).any()
    np.testing.assert_array_equal(split.judged, split.left_out)
    if n_members > 1 and len(codes) > 150:
        assert left_out.sum(axis=0).max() == (2 if n_members == 10 else 1)


def test_folds_by_buckets_have_equal_shares_of_many_rows():
    keys = row_keys(np.random.default_rng(0).standard_normal((200_000, 2)))
    split = split_rows(np.zeros(200_000, np.uint8), 5, 3, buckets=buckets(keys))
    assert (split.left_out @ split.counts / 200_000).tolist() == pytest.approx([0.2] * 5, abs=0.01)


@pytest.mark.parametrize("n_days", [2, 40])
def test_judges_of_many_rows_learn_from_earlier_ones_alone(n_days):
    rng = np.random.default_rng(0)
    codes = (rng.random(600) < 0.3).astype(np.uint8)
    moments = np.sort(rng.integers(0, n_days, 600))
    passed = np.searchsorted(forward_cuts(moments, codes, 3), moments, side="right")
    found = buckets(rng.integers(0, 2**40, 600))
    split = split_rows(codes, 6, 0, passed=passed, buckets=found)
    assert split.speakers[3:].all()
    assert not split.speakers[:2].any()
    judged = split.judged[:, split.kinds]
    assert judged.sum(axis=0).max() == 1
    assert judged[split.speakers].sum() == 0
    for member in np.flatnonzero(judged.any(axis=1)):
        learned = ~split.left_out_of(slice(None))[member]
        assert moments[learned].max() < moments[judged[member]].min()


# --------------------------------------------------------------------------------------- episodes


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("sharing", ["shared", "separate"])
def test_episodes_of_many_rows_deal_all_own_rows_before_any_twice_and_know_them_before(sharing):
    rng = np.random.default_rng(0)
    codes = rng.choice(3, 500, p=[0.8, 0.15, 0.05]).astype(np.uint8)
    split = split_rows(codes, 3, 0, buckets=buckets(np.arange(500)))

    def make():
        return EpisodeBatches(split, 3, sharing=sharing, random_state=5, **SIZES)

    episodes = make()
    planned = episodes.plan(60)
    drawn = np.stack([episodes.draw() for _ in range(60)])
    _, first = np.unique(drawn, return_index=True)
    np.testing.assert_array_equal(planned, drawn.ravel()[np.sort(first)])
    groups = 1 if sharing == "shared" else 3
    for place in range(drawn.shape[1]):
        own = np.flatnonzero(~split.left_out_of(slice(None))[place // groups])
        if sharing == "shared":  # heads that draw apart have padding
            counts = np.bincount(drawn[:, place].ravel(), minlength=500)
            assert not counts[np.setdiff1d(np.arange(500), own)].any()
            for code in range(3):
                mine = counts[own[codes[own] == code]]
                assert mine.max() - mine.min() <= 1
            hands = drawn[:, place].reshape(-1, drawn.shape[-1])
            assert all(len(set(hand)) == len(hand) for hand in hands.tolist())
    again = make()
    again.plan(60)
    again.skip(40)
    np.testing.assert_array_equal(again.draw(), drawn[40])


# ------------------------------------------------------------------------------------------ fits


def small(**parameters):
    values = {"n_members": 5, "encoder": (16,), "out_features": 8, "max_steps": 60}
    values |= {"scaling": "standard", "random_state": 0, "progress": False}
    return SetConvClassifier(**{**values, **parameters})


def made_rows(n=2000, seed=0, shift=1.2):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.1, "rare", "common")
    return rng.standard_normal((n, 6)) + shift * (y == "rare")[:, None], y


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("how", ["copies", "groups", "copies in other groups", "time"])
def test_nothing_is_seen_in_noise(how):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((500, 12)), np.where(rng.random(500) < 0.2, "rare", "common")
    given = {}
    if how in ("copies", "copies in other groups"):
        X, y = np.tile(X, (3, 1)), np.tile(y, 3)
        if how == "copies in other groups":
            given["groups"] = np.repeat(np.arange(30), 50)
    elif how == "groups":  # of a group all rows have one label and lie together
        given["groups"] = np.arange(500) // 5
        y = y[given["groups"] * 5]
        X += 3 * rng.standard_normal((100, 12))[given["groups"]]
    else:
        X, y, given["time"] = np.tile(X, (2, 1)), np.tile(y, 2), np.arange(1000) // 100
    clf = small(max_steps=300).fit(X, y, **given)
    report = clf.report_["rare"]
    low, high = report.intervals["auc"]
    assert low < 0.5 < high or 0.42 < report.auc < 0.58
    if how in ("copies in other groups", "time"):
        with pytest.raises(ValueError, match="recall"):
            small(objective="recall>=0.5 @ 60%").fit(X, y, **given)


@pytest.mark.usefixtures("few_are_many")
def test_figures_of_sampled_evidence_speak_of_all_rows(tmp_path):
    X, y = made_rows()
    clf = small().fit(X, y)
    found, rare = clf.predict_out_of_fold(), (y == "rare").sum()
    assert len(found) == 400
    assert (found.truth == "rare").sum() == min(rare, 200)
    np.testing.assert_array_equal(y[found.rows], found.truth)
    # Each row counts for as many as it stands for, so the report is that of rows repeated so often.
    assert found.weights.sum() == pytest.approx(2000)
    assert clf.report_.confusion.sum(axis=1).tolist() == pytest.approx([2000 - rare, rare])
    by_hand = (found.labels == "rare")[found.truth == "rare"].mean()
    assert clf.report_["rare"].sensitivity == pytest.approx(by_hand)
    wrong = (found.labels == "rare")[found.truth == "common"].mean() * (2000 - rare)
    assert clf.report_["rare"].precision == pytest.approx(by_hand * rare / (by_hand * rare + wrong))
    assert clf.threshold_basis_ == "400 out-of-fold rows that stand for 2,000"
    assert any("that stand for 2,000" in note for note in clf.report_.remarks())
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model").set_objective("f1")
    clf.set_objective("f1")
    assert json.dumps(again.report_.to_dict()) == json.dumps(clf.report_.to_dict())
    assert again.threshold_ == clf.threshold_


@pytest.mark.usefixtures("few_are_many")
def test_the_way_of_many_rows_is_as_good_as_the_exact_one(monkeypatch):
    X, y = made_rows(4000)
    X_new, y_new = made_rows(4000, seed=1)

    def auc(model):
        scores = model.decision_function(X_new)
        ours, rest = scores[y_new == "rare"], scores[y_new == "common"]
        return (ours[:, None] > rest).mean()

    many = auc(small().fit(X, y))
    monkeypatch.setattr("setconv.sampling.MANY_ROWS", 10**6)
    monkeypatch.setattr("setconv.fitting.MOST_EVIDENCE", 10**6)
    assert many == pytest.approx(auc(small().fit(X, y)), abs=0.003)


@pytest.mark.usefixtures("few_are_many")
def test_rows_that_are_alike_by_nature_are_dealt_as_any_others():
    X, y = made_rows(1200)
    X = (X[:, :3] > 0).astype(float)  # eight different rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = small().fit(X, y)
    assert not clf.report_.unjudged
    assert clf.report_["rare"].auc > 0.7


@pytest.mark.usefixtures("few_are_many")
def test_validation_rows_that_are_held_out_have_no_copies_in_training(monkeypatch):
    X, y = made_rows(600)
    X, y, held = np.tile(X, (3, 1)), np.tile(y, 3), []

    def watched(codes, fraction, units, seed):
        held.append(split_validation(codes, fraction, units, seed))
        return held[0]

    monkeypatch.setattr("setconv.classifier.split_validation", watched)
    small(early_stopping=True).fit(X, y)
    inside, outside = held[0]
    assert len(outside) == pytest.approx(180, abs=90)
    assert not np.isin(row_keys(X[outside]), row_keys(X[inside])).any()


@pytest.mark.usefixtures("few_are_many")
def test_the_number_of_rows_is_nothing_to_a_model_file(tmp_path):
    sizes = []
    for n_rows in (1000, 3000):
        small(max_steps=5).fit(*made_rows(n_rows)).save(tmp_path / str(n_rows))
        sizes.append((tmp_path / str(n_rows) / "model.safetensors").stat().st_size)
    assert abs(sizes[1] - sizes[0]) < 200  # digits of numbers in the configuration
