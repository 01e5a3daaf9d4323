"""From scores to probabilities and classes."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, softmax

from setconv.decision import decide, probabilities

FEW = settings(max_examples=60, deadline=None)


def score_matrices(bound, heads):
    return heads.flatmap(
        lambda width: arrays(
            np.float64,
            st.tuples(st.integers(1, 5), st.just(width)),
            elements=st.floats(-bound, bound),
        )
    )


HEADS = st.sampled_from([1, 3, 4])


@FEW
@given(score_matrices(1e6, HEADS))
def test_probabilities_are_probabilities_for_any_scores(scores):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chances = probabilities(scores)
    assert chances.shape == (len(scores), 2 if scores.shape[1] == 1 else scores.shape[1])
    assert ((chances >= 0) & (chances <= 1)).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-12)


@FEW
@given(score_matrices(1e6, HEADS))
def test_the_class_decided_has_the_largest_probability(scores):
    chosen = decide(scores)
    assert chosen.dtype == np.int64
    chances = probabilities(scores)
    assert (chances[np.arange(len(scores)), chosen] == chances.max(axis=1)).all()


@FEW
@given(score_matrices(10, HEADS))
def test_decisions_and_the_largest_probabilities_are_the_same_where_floats_can_tell(scores):
    scores = np.round(scores, 3)
    np.testing.assert_array_equal(decide(scores), np.argmax(probabilities(scores), axis=1))


@FEW
@given(score_matrices(300, st.just(1)))
def test_one_head_is_the_softmax_over_two_similarities(scores):
    # Equations 5-6: only the difference of the similarities counts.
    similarities = np.concatenate([np.full_like(scores, 7.0), scores + 7.0], axis=1)
    np.testing.assert_allclose(
        probabilities(scores), softmax(similarities, axis=1), rtol=1e-9, atol=1e-12
    )


@FEW
@given(score_matrices(30, st.just(4)))
def test_several_heads_are_in_the_ratio_of_their_own_probabilities(scores):
    own = expit(scores)
    np.testing.assert_allclose(
        probabilities(scores), own / own.sum(axis=1, keepdims=True), rtol=1e-9
    )


def test_a_row_that_no_head_claims_still_goes_to_the_least_unlikely_class():
    scores = np.array([[-3000.0, -2000.0, -2500.0]])
    assert decide(scores).tolist() == [1]
    np.testing.assert_allclose(probabilities(scores), [[0, 1, 0]], atol=1e-100)


@pytest.mark.parametrize(("score", "chosen"), [(-0.1, 0), (0.0, 0), (0.1, 1)])
def test_one_head_decides_by_its_sign(score, chosen):
    assert decide(np.array([[score]])).tolist() == [chosen]
