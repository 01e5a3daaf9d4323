"""Samples, the learned space, the words that are marked, and shares in words."""

import numpy as np
import pytest
from judging import cosines

from setconv.explain import word_contributions
from setconv.report.measure import evaluate
from setconv.report.rows import compare_judged, explain_words, gather, read_source
from setconv.report.space import draw_map, sample_rows
from setconv.report.words import of_100


def test_a_sample_keeps_rare_classes_and_its_bound():
    codes = np.repeat([0, 1, 2], [100_000, 300, 4])
    kept = sample_rows(codes, 1500, seed=0)
    assert np.bincount(codes[kept])[1:].tolist() == [250, 4]
    assert len(kept) <= 1500
    assert np.array_equal(kept, sample_rows(codes, 1500, seed=0))
    assert sample_rows(codes[:10], 1500, seed=0).tolist() == list(range(10))


def sources_of(model, X, y, *, out_of_fold):
    evaluation = evaluate(model, X, y, predictions=None, out_of_fold=out_of_fold)
    here = read_source(X, evaluation.codes, None, None, "row_names")
    return gather(model, evaluation, here, here, None, (), seed=0)


@pytest.mark.parametrize("name", ["two", "out of fold", "three", "three out of fold"])
def test_the_map_lays_stars_among_the_rows_of_their_class(cases, name):
    case = cases[name]
    sources = sources_of(case.model, case.X, case.y, out_of_fold=case.out_of_fold)
    near = compare_judged(sources, seed=0)
    laid_out = draw_map(case.model, sources.evaluation, near.similarities, near.codes, seed=0)
    right = cosines(case.model, case.X, case.said.left_out)
    np.testing.assert_allclose(near.similarities, right, atol=1e-5)
    points, stars = laid_out.points, laid_out.representatives
    if len(case.classes) == 2:  # the similarities are the axes, that to the main class first
        np.testing.assert_array_equal(points, near.similarities[:, ::-1])
        assert stars[:, ::-1].diagonal() == pytest.approx(1)
        assert laid_out.explained is None
    else:
        assert 0 < laid_out.explained <= 1
    centres = np.stack([points[laid_out.classes == c].mean(axis=0) for c in range(len(stars))])
    directions = (stars - stars.mean(axis=0)) * (centres - centres.mean(axis=0))
    assert (directions.sum(axis=1) > 0).all()


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


def test_a_share_never_rounds_to_a_false_all_or_none():
    shares = (0, 0.0001, 0.004, 0.914, 0.996, 0.9999, 1, np.nan)
    right = ["0", "fewer than 0.1", "0.4", "91", "99.6", "more than 99.9", "100", "n/a"]
    assert list(map(of_100, shares)) == right
