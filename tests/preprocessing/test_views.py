"""Three ways to look at a column, and the members that take them."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from setconv.errors import DataError, ParameterError
from setconv.preprocessing import CLIP, FEW_COLUMNS, VIEWS, PreparedRows, Scaler, fit_scaler

NAMES = tuple(VIEWS)
every_view = pytest.mark.parametrize("name", NAMES)


def fit_view(name, rows, weights=None):
    weights = np.ones(len(rows)) if weights is None else weights
    (view,) = fit_scaler([name], rows, weights).views
    return view


@pytest.fixture
def unbounded(monkeypatch):
    """Standardised features stay as they are, however large."""
    monkeypatch.setattr("setconv.preprocessing.CLIP", np.inf)


@pytest.fixture
def rows(rng):
    """A normal column, a skewed one, one of a few values, a constant one."""
    normal = rng.standard_normal((300, 2))
    few = rng.integers(0, 3, 300).astype(float)
    return np.column_stack([normal[:, 0], np.exp(2 * normal[:, 1]), few, np.full(300, 7.25)])


# ------------------------------------------------------------------------------- all three views


@every_view
@given(
    st.lists(st.floats(-1e6, 1e6, allow_nan=False, allow_subnormal=False), min_size=3, max_size=60)
)
def test_no_input_falls_as_its_column_rises(name, column):
    rows = np.sort(np.array(column))[:, None]
    mapped = fit_view(name, rows)(rows)
    assert np.isfinite(mapped).all()
    assert (np.diff(mapped, axis=0) >= 0).all()


@every_view
@pytest.mark.parametrize("n", [2, 7, 1000, 30_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_constant_columns_are_centred_and_finite(name, n, dtype):
    rows = np.tile(np.array([0.0, 0.1, 1 / 3, -7.7, 1.7e18], dtype=dtype), (n, 1))
    view = fit_view(name, rows)
    np.testing.assert_allclose(view(rows)[:, :4], 0, atol=1e-6)
    assert np.isfinite(view(rows)).all()
    if name == "standard":
        np.testing.assert_array_equal(view.scale, 1.0)


@every_view
def test_a_view_survives_as_arrays_and_knows_which_rows_it_fits(name, rows):
    view = fit_view(name, rows)
    restored = VIEWS[view.kind].restore(view.arrays())
    np.testing.assert_array_equal(restored(rows), view(rows))
    assert restored.fits(4)
    assert not restored.fits(3)
    first = next(iter(view.arrays()))
    assert not VIEWS[name].restore({**view.arrays(), first: view.arrays()[first][1:]}).fits(4)


# ------------------------------------------------------------------------------------ standardised


@given(
    st.integers(2, 60),
    st.integers(1, 5),
    st.booleans(),
    st.sampled_from([np.float32, np.float64]),
    st.integers(0, 2**31),
)
def test_standard_is_that_of_scikit_learn_and_then_a_bound(n, d, weighted, dtype, seed):
    rng = np.random.default_rng(seed)
    width = 10.0 ** rng.uniform(-3, 3, size=d)
    rows = (width * (rng.uniform(-20, 20, size=d) + rng.normal(size=(n, d)))).astype(dtype)
    weights = rng.uniform(0.1, 5, size=n) if weighted else np.ones(n)
    reference = StandardScaler().fit(rows.astype(np.float64), sample_weight=weights)
    view = fit_view("standard", rows, weights)
    np.testing.assert_allclose(view.mean, reference.mean_, rtol=1e-9)
    np.testing.assert_allclose(view.scale, reference.scale_, rtol=1e-7)
    expected = np.clip(reference.transform(3 * rows.astype(np.float64)), -CLIP, CLIP)
    np.testing.assert_allclose(view(3 * rows), expected, rtol=1e-3, atol=1e-3)


def test_large_values_are_standardised_or_refused_by_their_column(rng):
    rows = rng.normal(size=(50, 3))
    np.testing.assert_allclose(fit_view("standard", 1e100 * rows)(1e100 * rows).std(axis=0), 1)
    np.testing.assert_array_equal(fit_view("standard", rows)(np.full((1, 3), 1e300)), [[5.0] * 3])
    rows[:, 2] *= 1e200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError) as raised:
            fit_view("standard", rows)
    assert raised.value.column == 2


# ------------------------------------------------------------------------------------------ normal


@pytest.mark.parametrize("n", [300, 3000])
def test_normal_agrees_with_the_quantile_transformer(n, rng):
    rows = np.stack([rng.standard_normal(n), rng.exponential(size=n), rng.uniform(size=n)], axis=1)
    found = fit_view("normal", rows)(rows)
    theirs = QuantileTransformer(
        output_distribution="normal", n_quantiles=n, subsample=None
    ).fit_transform(rows)
    inner = np.abs(theirs) < 2
    assert np.abs(found - theirs)[inner].max() < 0.05
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=0.01)
    np.testing.assert_allclose(found.std(axis=0), 1, atol=0.01)


def test_values_between_are_interpolated_and_beyond_are_held_at_the_ends(rows):
    view = fit_view("normal", rows)
    low, middle, high = view(np.array([[0.0] * 4, [0.5] * 4, [1.0] * 4]))[:, 2]
    assert low < middle < high
    assert middle == pytest.approx((low + high) / 2, abs=1e-6)
    ends = np.array([rows.min(axis=0), rows.max(axis=0)])
    for name in ("normal", "pieces"):
        held = fit_view(name, rows[:, :3])
        assert np.array_equal(held(np.array([[-1e9] * 3, [1e9] * 3])), held(ends[:, :3]))


# ------------------------------------------------------------------------------------------ pieces


@pytest.mark.usefixtures("unbounded")
def test_pieces_are_those_of_a_loop(rows):
    view = fit_view("pieces", rows)
    filled = np.zeros((len(rows), view.width))
    for row in range(len(rows)):
        for piece in range(view.width):
            low, high = view.low[piece], view.high[piece]
            value = rows[row, view.column[piece]]
            filled[row, piece] = min(1.0, max(0.0, (value - low) / (high - low)))
    spread = filled.std(axis=0)
    expected = (filled - filled.mean(axis=0)) / np.where(spread > 0, spread, 1)
    np.testing.assert_allclose(view(rows), expected, atol=1e-4)


# ---------------------------------------------------------------------------------- several, none


@pytest.mark.usefixtures("unbounded")
def test_pieces_are_cut_and_standardised_by_weight(rows, rng):
    weights = rng.uniform(0.1, 3, len(rows))
    mapped = fit_view("pieces", rows, weights)(rows)
    np.testing.assert_allclose(np.average(mapped, axis=0, weights=weights), 0, atol=1e-5)
    line = np.arange(100.0)[:, None]
    skewed = fit_view("pieces", line, np.where(line[:, 0] < 50, 100.0, 1.0))
    assert np.median(skewed.high) < 50


@pytest.mark.parametrize("names", [NAMES, ("pieces", "standard"), ("normal", "normal")], ids=str)
def test_views_lie_one_behind_the_other_and_narrow_ones_are_padded_with_zeros(names, rows):
    scaler = fit_scaler(names, rows, np.ones(len(rows)))
    assert [view.kind for view in scaler.views] == list(names)
    width = max(view.width for view in scaler.views)
    scaled = scaler(rows)
    assert scaled.shape == (len(names), len(rows), scaler.width(4)) == (len(names), 300, width)
    assert scaled.dtype == np.float32
    for found, view in zip(scaled, scaler.views, strict=True):
        np.testing.assert_array_equal(found[:, : view.width], view(rows).astype(np.float32))
        assert not found[:, view.width :].any()


def test_without_views_rows_come_back_as_float32(rows):
    scaler = fit_scaler([], rows, np.ones(len(rows)))
    assert scaler == Scaler()
    np.testing.assert_array_equal(scaler(rows), rows.astype(np.float32)[None])
    narrow = rows.astype(np.float32)
    assert np.shares_memory(scaler(narrow), narrow)  # nothing to do, nothing copied
    with pytest.raises(DataError) as raised:
        scaler(np.array([[1.0, 1e39]]))
    assert raised.value.column == 1


@pytest.mark.parametrize(
    ("scaling", "shape", "members", "expected"),
    [
        ("auto", (100, FEW_COLUMNS), 10, NAMES),
        ("auto", (100, FEW_COLUMNS + 1), 10, ("standard",)),
        ("auto", (1_000_000, 50), 5, ("standard",)),
        ("auto", (100, 5), 2, ("standard", "normal")),
        ("auto", (100, 5), 1, ("standard",)),
        (None, (100, 5), 10, ()),
        ("pieces", (100, 500), 10, ("pieces",)),  # who asks for them gets them
        (["normal", "pieces", "normal"], (100, 5), 2, ("normal", "pieces")),
    ],
)
def test_the_views_that_members_take(scaling, shape, members, expected):
    prepared = PreparedRows(np.broadcast_to(0.0, shape))
    assert prepared.choose_views(scaling, members) == expected


@pytest.mark.parametrize(
    "scaling", ["minmax", "", True, 3, [], ["standard", "auto"], [["standard"]], {"other": 1}]
)
def test_an_unknown_scaling_is_refused(scaling):
    with pytest.raises(ParameterError) as raised:
        PreparedRows(np.zeros((100, 5))).choose_views(scaling, 3)
    assert raised.value.parameter == "scaling"
