"""Samples, the learned space, the rows that are shown, and words."""

import numpy as np
import pytest
from judging import cosines

from setconv.explain import word_contributions
from setconv.report.measure import evaluate
from setconv.report.rows import compare_judged, explain_words, gather
from setconv.report.space import draw_map, sample_rows
from setconv.report.words import of_100, readable


def test_a_sample_keeps_rare_classes_and_its_bound():
    codes = np.repeat([0, 1, 2], [100_000, 300, 4])
    kept = sample_rows(codes, 1500, seed=0)
    assert np.bincount(codes[kept])[1:].tolist() == [250, 4]
    assert len(kept) <= 1500
    assert (np.diff(kept) > 0).all()
    assert np.array_equal(kept, sample_rows(codes, 1500, seed=0))
    assert sample_rows(codes[:10], 1500, seed=0).tolist() == list(range(10))


def sources_of(model, X, y, *, out_of_fold=False):
    evaluation = evaluate(model, X, y, predictions=None, out_of_fold=out_of_fold)
    return gather(model, X, evaluation)


@pytest.mark.parametrize("out_of_fold", [False, True])
@pytest.mark.parametrize("kind", ["two", "many"])
def test_similarities_are_cosines_of_the_members_that_may_speak(
    kind, out_of_fold, fitted, binary, fitted_multiclass, multiclass
):
    model, (X, y) = {"two": (fitted, binary), "many": (fitted_multiclass, multiclass)}[kind]
    sources = sources_of(model, X, y, out_of_fold=out_of_fold)
    found, evaluation = compare_judged(sources, seed=0), sources.evaluation
    assert np.array_equal(found.rows, evaluation.rows)
    right = cosines(model, X[evaluation.rows], evaluation.left_out)
    np.testing.assert_allclose(found.similarities, right, atol=1e-5)


def map_of(model, X, y):
    sources = sources_of(model, X, y)
    found = compare_judged(sources, seed=0)
    return found, draw_map(model, sources.evaluation, found.similarities, found.codes, seed=0)


def test_the_map_of_two_classes_has_their_similarities_for_axes(fitted, binary):
    found, laid_out = map_of(fitted, *binary)
    assert laid_out.explained is None
    assert np.array_equal(laid_out.points, found.similarities[:, ::-1])
    stars = laid_out.representatives
    assert (stars[1, 0], stars[0, 1]) == pytest.approx((1, 1))
    assert stars[0, 0] == pytest.approx(stars[1, 1])
    centres = np.stack([laid_out.points[laid_out.classes == c].mean(axis=0) for c in (0, 1)])
    distance = np.linalg.norm(stars[:, None] - centres, axis=-1)
    assert distance.argmin(axis=1).tolist() == [0, 1]


def test_the_map_of_many_classes_lays_stars_among_their_rows(fitted_multiclass, multiclass):
    _, laid_out = map_of(fitted_multiclass, *multiclass)
    assert laid_out.points.shape == (400, 2)
    assert 0 < laid_out.explained <= 1
    centres = np.stack([laid_out.points[laid_out.classes == c].mean(axis=0) for c in range(4)])
    offset = laid_out.representatives - laid_out.representatives.mean(axis=0)
    apart = centres - centres.mean(axis=0)
    assert ((offset * apart).sum(axis=1) > 0).all()  # in the direction of its rows


def test_words_of_a_training_text_are_marked_by_the_members_that_left_it_out(copied):
    model, texts, labels = copied
    said = model.predict_out_of_fold()
    sources = sources_of(model, texts, labels, out_of_fold=True)
    places = np.array([3, 40, 9])
    asked = [texts[row] for row in said.rows[places]]
    found = explain_words(sources, asked, sources.evaluation.predicted[places], places)
    for place, text, of in zip(places, asked, found, strict=True):
        right = word_contributions(model._only(said.left_out[:, place]), text, said.labels[place])
        np.testing.assert_allclose(of.values, right.values, atol=1e-9)
        assert of.score == pytest.approx(right.score)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0, "0"),
        (1, "100"),
        (0.914, "91"),
        (0.9999, "more than 99.9"),
        (0.996, "99.6"),
        (0.004, "0.4"),
        (0.0001, "fewer than 0.1"),
        (float("nan"), "n/a"),
    ],
)
def test_a_share_never_rounds_to_a_false_all_or_none(share, words):
    assert of_100(share) == words


def test_any_value_becomes_text_that_can_be_written():
    shown = readable("a\x00b\ud800c\r\n d" + "x" * 10**6, 20)
    assert shown.encode("utf-8")
    assert shown == "a b c dxxxxxxxxxxxxx …"
    assert (readable("", 10), readable(True, 10)) == ("(empty)", "True")
