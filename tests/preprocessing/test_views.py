"""Three ways to look at a column, and the members that take them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from setconv.classifier import SetConvClassifier
from setconv.errors import DataError, ParameterError
from setconv.persistence import describe_views, restore_views, views_fit
from setconv.preprocessing import (
    FEW_COLUMNS,
    VIEWS,
    Scaler,
    choose_views,
    fit_normal,
    fit_pieces,
    fit_scaler,
    fit_standard,
)


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
    n = 300
    return np.stack(
        [
            rng.standard_normal(n),
            np.exp(2 * rng.standard_normal(n)),
            rng.integers(0, 3, n).astype(float),
            np.full(n, 7.25),
        ],
        axis=1,
    )


columns = st.lists(
    st.floats(-1e6, 1e6, allow_nan=False, allow_subnormal=False), min_size=3, max_size=60
)


@given(columns)
def test_standard_and_normal_never_turn_an_order_round(column):
    rows = np.array(column)[:, None]
    order = np.argsort(rows[:, 0], kind="stable")
    for name in ("standard", "normal"):
        mapped = fit_view(name, rows)(rows)[order, 0]
        assert np.isfinite(mapped).all()
        assert (np.diff(mapped) >= 0).all()


@given(columns)
def test_no_piece_falls_as_its_column_rises(column):
    rows = np.array(column)[:, None]
    order = np.argsort(rows[:, 0], kind="stable")
    mapped = fit_view("pieces", rows)(rows)[order]
    assert np.isfinite(mapped).all()
    assert (np.diff(mapped, axis=0) >= 0).all()


def test_normal_keeps_different_values_apart(rows):
    mapped = fit_view("normal", rows[:, :2])(rows[:, :2])
    for column in range(2):
        assert len(np.unique(mapped[:, column])) == len(np.unique(rows[:, column]))


@pytest.mark.parametrize("name", VIEWS)
def test_a_constant_column_is_constant_and_finite_also_for_other_values(name, rows):
    view = fit_view(name, rows)
    other = rows.copy()
    other[:, 3] = np.linspace(-1e5, 1e5, len(rows))
    seen, unseen = view(rows), view(other)
    assert np.isfinite(seen).all()
    assert np.isfinite(unseen).all()
    # All inputs but the constant column's do not notice.
    own = view.column == 3 if name == "pieces" else np.arange(view.width) == 3
    assert len(np.unique(seen[:, own])) == 1
    assert np.array_equal(seen[:, ~own], unseen[:, ~own])


@pytest.mark.parametrize(
    "name",
    [
        "standard",
        "pieces",
        "normal",
    ],
)
def test_a_constant_column_is_centred(name):
    found = [fit_view(name, np.full((n, 1), 3.0))(np.full((n, 1), 3.0)) for n in range(2, 80)]
    assert max(float(np.abs(one).max()) for one in found) < 1e-12


@pytest.mark.parametrize(
    "name",
    [
        "standard",
        "normal",
        "pieces",
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_constant_column_may_be_large(name, rows):
    rows[:, 3] = 1.7e18  # nanoseconds since 1970
    assert np.isfinite(fit_view(name, rows)(rows)).all()


@pytest.mark.parametrize("name", VIEWS)
def test_heavy_outliers_stay_within_bounds_and_leave_the_rest_apart(name, rows):
    rows[0, 0], rows[1, 0] = 1e12, -1e12
    view = fit_view(name, rows)
    mapped = view(rows)
    assert np.isfinite(mapped).all()
    assert np.abs(mapped).max() <= 5.0
    if name != "standard":
        own = view.column == 0 if name == "pieces" else [0]
        assert len(np.unique(mapped[2:, own], axis=0)) > 200


def test_unseen_values_are_held_at_the_ends(rows):
    view = fit_view("normal", rows)
    far = view(np.array([[-1e9] * 4, [1e9] * 4]))
    ends = view(np.array([rows.min(axis=0), rows.max(axis=0)]))
    assert np.array_equal(far, ends)
    pieces = fit_view("pieces", rows)
    far = pieces(np.array([[-1e9] * 3 + [7.25], [1e9] * 3 + [7.25]]))
    ends = pieces(np.array([rows.min(axis=0), rows.max(axis=0)]))
    assert np.array_equal(far, ends)
    assert np.array_equal(fit_view("standard", rows)(np.full((1, 4), 1e9)), np.full((1, 4), 5.0))


def test_unseen_values_in_between_are_interpolated(rows):
    view = fit_view("normal", rows)
    low, middle, high = view(np.array([[0.0] * 4, [0.5] * 4, [1.0] * 4]))[:, 2]
    assert low < middle < high
    assert middle == pytest.approx((low + high) / 2, abs=1e-6)


@pytest.mark.parametrize("name", VIEWS)
def test_float32_rows_are_seen_as_float64_ones(name, rows):
    narrow = rows.astype(np.float32)
    view = fit_view(name, narrow)
    expected = fit_view(name, narrow.astype(np.float64))(narrow.astype(np.float64))
    np.testing.assert_allclose(view(narrow), expected, rtol=1e-4, atol=1e-4)
    scaled = Scaler((view,))(narrow)
    assert scaled.dtype == np.float32
    assert scaled.shape == (1, len(rows), view.width)


@pytest.mark.usefixtures("unbounded")
def test_standard_is_that_of_scikit_learn(rows):
    found = fit_view("standard", rows)(rows)
    np.testing.assert_allclose(found, StandardScaler().fit_transform(rows), atol=1e-10)


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


def test_many_values_are_kept_at_500_knots_with_both_ends(rng):
    rows = rng.standard_normal((4000, 2))
    view = fit_view("normal", rows)
    assert (np.diff(view.starts) <= 500).all()
    for column, start in enumerate(view.starts[:-1]):
        knots = view.knots[start : view.starts[column + 1]]
        assert (knots[0], knots[-1]) == (rows[:, column].min(), rows[:, column].max())
        assert (np.diff(knots) > 0).all()


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


def test_pieces_are_cut_at_the_quantiles(rows):
    view = fit_view("pieces", rows)
    assert np.bincount(view.column).tolist() == [8, 8, 2, 1]
    for column in (0, 1):
        own = view.column == column
        edges = np.r_[view.low[own], view.high[own][-1]]
        np.testing.assert_allclose(edges, np.quantile(rows[:, column], np.linspace(0, 1, 9)))
        assert np.histogram(rows[:, column], edges)[0].min() >= 300 // 8 - 1


@pytest.mark.parametrize("name", ["standard", "normal"])
def test_a_weight_of_two_is_the_row_twice(name, rows):
    weights = np.ones(len(rows))
    weights[:100] = 2
    weighted = fit_view(name, rows, weights)(rows)
    doubled = fit_view(name, np.concatenate([rows, rows[:100]]))(rows)
    varied = slice(0, 3)
    np.testing.assert_allclose(weighted[:, varied], doubled[:, varied], atol=1e-6)


@pytest.mark.usefixtures("unbounded")
def test_pieces_are_standardised_by_weight(rows):
    weights = np.random.default_rng(0).uniform(0.1, 3, len(rows))
    mapped = fit_view("pieces", rows, weights)(rows)
    np.testing.assert_allclose(np.average(mapped, axis=0, weights=weights), 0, atol=1e-5)


@pytest.mark.parametrize("name", VIEWS)
def test_only_the_ratio_of_weights_matters(name, rows):
    weights = np.random.default_rng(0).uniform(0.1, 3, len(rows))
    one, two = (fit_view(name, rows, factor * weights)(rows) for factor in (1.0, 4.0))
    np.testing.assert_array_equal(one, two)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_tiny_weight_on_the_largest_value_is_no_harm():
    rows = np.arange(5.0)[:, None]
    view = fit_view("normal", rows, np.array([1, 1, 1, 1, 1e-18]))
    assert np.isfinite(view(rows)).all()


def test_a_column_too_large_is_named(rows):
    rows[:, 1] *= 1e200
    with pytest.raises(DataError, match="Column 1 of X"):
        fit_view("standard", rows)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_column_too_large_for_pieces_is_named(rows):
    rows[0, 1], rows[1, 1] = 1.7e308, -1.7e308
    with pytest.raises(DataError, match="Column 1 of X"):
        fit_view("pieces", rows)


def test_a_column_too_large_for_float32_is_named_without_views():
    with pytest.raises(DataError, match="Column 1 of X"):
        Scaler()(np.array([[1.0, 1e39]]))


def test_views_lie_side_by_side_and_narrow_ones_are_padded(rows):
    scaler = fit_scaler(VIEWS, rows, np.ones(len(rows)))
    scaled = scaler(rows)
    assert scaled.shape == (3, 300, 19)
    assert scaled.dtype == np.float32
    assert scaler.width(4) == 19
    assert not scaled[:2, :, 4:].any()
    for number, view in enumerate(scaler.views):
        np.testing.assert_array_equal(
            scaled[number, :, : view.width], view(rows).astype(np.float32)
        )


@pytest.mark.parametrize("name", VIEWS)
def test_a_row_is_seen_the_same_alone(name, rows):
    view = fit_view(name, rows)
    assert np.array_equal(view(rows)[5], view(rows[5:6])[0])


def test_views_survive_as_plain_data(rows):
    scaler = fit_scaler(VIEWS, rows, np.ones(len(rows)))
    restored = restore_views(*describe_views(scaler))
    np.testing.assert_array_equal(restored(rows), scaler(rows))
    assert [view.kind for view in restored.views] == list(VIEWS)
    assert views_fit(restored, 4)
    assert not views_fit(restored, 5)


def test_a_view_of_an_unknown_kind_is_refused(rows):
    described, tensors = describe_views(fit_scaler(["standard"], rows, np.ones(len(rows))))
    described[0]["kind"] = "spline"
    with pytest.raises(ValueError, match="spline"):
        restore_views(described, tensors)


@pytest.mark.parametrize(
    ("scaling", "shape", "members", "expected"),
    [
        ("auto", (100, FEW_COLUMNS), 10, VIEWS),
        ("auto", (100, FEW_COLUMNS + 1), 10, ("standard",)),
        ("auto", (1_000_000, 50), 5, ("standard",)),
        ("auto", (100, 5), 2, ("standard", "normal")),
        ("auto", (100, 5), 1, ("standard",)),
        (None, (100, 5), 10, ()),
        ("pieces", (100, 500), 10, ("pieces",)),
        (["normal", "pieces", "normal"], (100, 5), 2, ("normal", "pieces")),
    ],
)
def test_the_views_that_members_take(scaling, shape, members, expected):
    assert choose_views(scaling, *shape, members) == tuple(expected)


@pytest.mark.parametrize("scaling", ["minmax", [], ["standard", "auto"], 3, {"normal": 1}])
def test_views_that_are_not_known_are_refused(scaling):
    if isinstance(scaling, dict):
        scaling = {"other": 1}
    with pytest.raises(ParameterError, match="scaling="):
        choose_views(scaling, 100, 5, 3)


def test_nothing_is_fitted_in_place(rows):
    before = rows.copy()
    weights = np.ones(len(rows))
    for view in (
        fit_standard(rows, weights),
        fit_normal(rows, weights),
        fit_pieces(rows, weights),
    ):
        view(rows)
    assert np.array_equal(rows, before)


@pytest.mark.parametrize("name", VIEWS)
def test_a_classifier_learns_in_every_view(name):
    rng = np.random.default_rng(0)
    y = np.arange(150) % 5 == 0
    X = rng.standard_normal((150, 3)) + 2.5 * y[:, None]
    clf = SetConvClassifier(
        n_members=2,
        scaling=name,
        encoder=(8,),
        out_features=4,
        max_steps=100,
        random_state=0,
        progress=False,
    ).fit(X, y)
    assert clf.oof_report_.macro_auc > 0.9
