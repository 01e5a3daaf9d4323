"""The standardised view against scikit-learn, and which views the members get."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from setconv.errors import DataError, ParameterError
from setconv.preprocessing import CLIP, VIEWS, Scaler, choose_views
from setconv.preprocessing import fit_scaler as fit_views

seeds = st.integers(0, 2**31)


def make_rows(seed, n, d, dtype=np.float64):
    """Columns of very different places and widths."""
    rng = np.random.default_rng(seed)
    width = 10.0 ** rng.uniform(-3, 3, size=d)
    place = width * rng.uniform(-20, 20, size=d)
    return (place + width * rng.normal(size=(n, d))).astype(dtype)


def fit_scaler(rows, weights):
    """The standardised view alone."""
    return fit_views(["standard"], rows, weights)


def ones(rows):
    return np.ones(len(rows))


@given(
    st.integers(2, 60),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from([np.float32, np.float64]),
    seeds,
)
def test_scaling_is_that_of_scikit_learn_and_then_a_bound(n, d, weighted, dtype, seed):
    rows = make_rows(seed, n, d, dtype)
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.1, 5, size=n) if weighted else np.ones(n)
    reference = StandardScaler().fit(rows.astype(np.float64), sample_weight=weights)
    scaler = fit_scaler(rows, weights)
    np.testing.assert_allclose(scaler.views[0].mean, reference.mean_, rtol=1e-9)
    np.testing.assert_allclose(scaler.views[0].scale, reference.scale_, rtol=1e-7)
    new = 3 * make_rows(seed + 1, 20, d, dtype)
    expected = reference.transform(new.astype(np.float64))
    expected = np.clip(expected, -CLIP, CLIP)
    (scaled,) = scaler(new)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, expected, rtol=1e-4, atol=1e-4)


def test_float32_rows_and_float64_rows_are_scaled_alike():
    rows = make_rows(0, 500, 6).astype(np.float32)
    narrow, wide = (fit_scaler(r, ones(r)) for r in (rows, rows.astype(float)))
    np.testing.assert_allclose(narrow.views[0].mean, wide.views[0].mean, rtol=1e-12)
    np.testing.assert_allclose(narrow(rows), wide(rows.astype(float)), rtol=1e-4, atol=1e-5)


def test_many_rows_are_scaled_as_few_are():
    rows = make_rows(0, 10_000, 3)  # more than one part of the streamed sums
    reference = StandardScaler().fit(rows)
    scaler = fit_scaler(rows, ones(rows))
    np.testing.assert_allclose(scaler.views[0].mean, reference.mean_, rtol=1e-10)
    np.testing.assert_allclose(scaler.views[0].scale, reference.scale_, rtol=1e-10)


def test_a_row_of_weight_two_is_the_row_twice():
    rows = make_rows(0, 20, 3)
    weights = np.random.default_rng(0).integers(1, 4, size=20)
    repeated = np.repeat(rows, weights, axis=0)
    weighted = fit_scaler(rows, weights.astype(float))
    plain = fit_scaler(repeated, ones(repeated))
    np.testing.assert_allclose(weighted.views[0].mean, plain.views[0].mean, rtol=1e-12)
    np.testing.assert_allclose(weighted.views[0].scale, plain.views[0].scale, rtol=1e-12)


def test_a_feature_far_away_still_has_its_own_scale():
    rows = 1e6 + np.random.default_rng(0).normal(size=(300, 1))
    scaler = fit_scaler(rows, ones(rows))
    assert scaler.views[0].scale[0] == pytest.approx(rows.std(), rel=1e-9)


# ------------------------------------------------------------------------------ constant columns


@pytest.mark.parametrize(
    "n",
    [
        1,
        2,
        7,
        1000,
        30_000,
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_columns_are_centred_and_left_at_scale_one(n, dtype):
    rows = np.tile(np.array([0.0, 0.1, 1 / 3, -7.7, 1e6 + 0.1], dtype=dtype), (n, 1))
    scaler = fit_scaler(rows, ones(rows))
    np.testing.assert_array_equal(scaler.views[0].scale, 1.0)
    np.testing.assert_allclose(scaler(rows), 0, atol=1e-6)


def test_a_constant_column_does_not_magnify_what_is_next_to_nothing():
    # A column that never varied must not throw a new row to the bound for the last digit of it.
    rows = np.column_stack([np.full(5000, 0.3), np.random.default_rng(0).normal(size=5000)])
    scaler = fit_scaler(rows, ones(rows))
    assert abs(scaler(np.array([[0.3 + 1e-12, 0.0]]))[0, 0, 0]) < 1e-6


# -------------------------------------------------------------------------------- no scaling


def test_without_views_rows_come_back_as_float32():
    rows = make_rows(0, 5, 3)
    scaler = fit_views([], rows, ones(rows))
    assert scaler == Scaler()
    np.testing.assert_array_equal(scaler(rows), rows.astype(np.float32)[None])
    narrow = rows.astype(np.float32)
    assert np.shares_memory(scaler(narrow), narrow)  # nothing to do, nothing copied


@pytest.mark.parametrize("names", [[], ["standard"], VIEWS], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_users_rows_are_not_changed(names, dtype):
    rows = make_rows(0, 50, 3, dtype)
    before = rows.copy()
    fit_views(names, rows, ones(rows))(rows)
    np.testing.assert_array_equal(rows, before)


# ------------------------------------------------------------------------------------ several views


@pytest.mark.parametrize("names", [VIEWS, ("pieces", "standard"), ("normal", "normal")], ids=str)
def test_views_lie_one_behind_the_other_and_narrow_ones_are_padded_with_zeros(names):
    rows = make_rows(0, 40, 3)
    scaler = fit_views(names, rows, ones(rows))
    assert [view.kind for view in scaler.views] == list(names)
    width = max(view.width for view in scaler.views)
    assert scaler.width(3) == width
    scaled = scaler(rows)
    assert scaled.shape == (len(names), 40, width)
    assert scaled.dtype == np.float32
    for found, view in zip(scaled, scaler.views, strict=True):
        np.testing.assert_array_equal(found[:, : view.width], view(rows).astype(np.float32))
        assert not found[:, view.width :].any()


def test_a_row_is_scaled_alike_alone_and_among_others():
    rows = make_rows(0, 300, 4)
    scaler = fit_views(VIEWS, rows, ones(rows))
    together = scaler(rows)
    for row in (0, 7, 299):
        np.testing.assert_array_equal(scaler(rows[row : row + 1])[:, 0], together[:, row])


@pytest.mark.parametrize(
    ("scaling", "members", "expected"),
    [
        (None, 3, ()),
        ("auto", 1, ("standard",)),
        ("auto", 2, VIEWS[:2]),
        ("auto", 7, VIEWS),
        ("standard", 7, ("standard",)),
        (["pieces"], 7, ("pieces",)),
        (("pieces", "normal"), 7, ("pieces", "normal")),
        (["pieces", "normal"], 1, ("pieces",)),
    ],
)
def test_the_views_follow_the_parameter_and_are_no_more_than_members(scaling, members, expected):
    assert choose_views(scaling, 500, 10, members) == expected


def test_wide_or_huge_data_is_standardised_only():
    assert choose_views("auto", 500, 768, 5) == ("standard",)
    assert choose_views("auto", 10**8, 50, 5) == ("standard",)
    assert choose_views(VIEWS, 500, 768, 5) == VIEWS  # who asks for them gets them


# -------------------------------------------------------------------------------------- errors


def test_values_beyond_float32_are_refused_by_their_column():
    rows = np.ones((4, 3))
    rows[2, 1] = 1e39
    with pytest.raises(DataError, match="Column 1 of X"):
        Scaler()(rows)


def test_values_beyond_float32_are_fine_once_standardised():
    rows = 1e100 * np.random.default_rng(0).normal(size=(50, 2))
    (scaled,) = fit_scaler(rows, ones(rows))(rows)
    np.testing.assert_allclose(scaled.std(axis=0), 1, rtol=1e-5)


def test_values_too_large_to_standardise_are_refused_by_their_column_without_warnings():
    rows = np.random.default_rng(0).normal(size=(50, 3))
    rows[:, 2] *= 1e200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match="Column 2 of X has values too large to standardise"):
            fit_scaler(rows, ones(rows))


def test_a_huge_new_value_is_brought_to_the_bound():
    rows = np.random.default_rng(0).normal(size=(50, 2))
    (scaled,) = fit_scaler(rows, ones(rows))(np.array([[1e300, -1e300]]))
    np.testing.assert_array_equal(scaled, [[5.0, -5.0]])


@pytest.mark.parametrize("scaling", ["minmax", True, 3, [], (), ["standard", "minmax"], [None], ""])
def test_an_unknown_scaling_is_refused(scaling):
    with pytest.raises(ParameterError, match=r"scaling=.*\"auto\".*'pieces'.*None"):
        choose_views(scaling, 100, 5, 3)


def test_a_scaling_of_lists_in_a_list_is_refused():
    with pytest.raises(ParameterError, match="scaling="):
        choose_views([["standard"]], 100, 5, 3)


def test_the_ends_of_pieces_follow_the_weights():
    rows = np.arange(100.0)[:, None]
    weights = np.where(rows[:, 0] < 50, 100.0, 1.0)
    (pieces,) = fit_views(["pieces"], rows, weights).views
    assert np.median(pieces.high) < 50
