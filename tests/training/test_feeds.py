"""Where training takes its rows from: a feed gives what plain indexing gives."""

import threading
from contextlib import closing
from itertools import repeat

import numpy as np
import pytest
import torch
from scipy import sparse

from setconv.io.disk import GatheredRows, StreamedRows
from setconv.preprocessing import VIEWS, fit_scaler
from setconv.training.loop import Feed

ROWS = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
several_views = pytest.mark.parametrize("views", [(), ("standard",), tuple(VIEWS)], ids=str)


@pytest.fixture
def on_disk():
    """The rows in a scratch file, in another order."""
    stream = StreamedRows(lambda: iter([ROWS]), ROWS.shape, np.float32)
    places = np.random.default_rng(0).permutation(50)
    with closing(GatheredRows(stream, np.arange(50), places)) as rows:
        rows.add(slice(0, 50), ROWS)
        yield rows


def scaler_of(*names):
    return fit_scaler(names, ROWS, np.ones(50))


def feed_of(features, scaler, n_members=1):
    return Feed(features, scaler, torch.device("cpu"), n_members)


def draw(*shape):
    rng = np.random.default_rng(0)
    return [rng.integers(0, 50, shape) for _ in range(4)]


@several_views
@pytest.mark.parametrize(("members", "heads"), [(3, 2), (4, 1)])
def test_rows_are_those_of_each_members_view_wherever_they_lie(on_disk, views, members, heads):
    scaler = scaler_of(*views)
    scaled = scaler(ROWS)
    view = [group // heads % len(scaled) for group in range(members * heads)]
    draws = draw(members * heads, 2, 5)
    for features in (ROWS, on_disk, sparse.csr_matrix(ROWS)):
        batches = feed_of(features, scaler, members).batches(iter(draws))
        for drawn, (told, rows) in zip(draws, batches, strict=True):
            assert np.array_equal(told, drawn)
            expected = np.stack([scaled[v][one] for v, one in zip(view, drawn, strict=True)])
            np.testing.assert_allclose(rows.numpy(), expected, rtol=1e-6)


# ------------------------------------------------------------------------------- reading ahead


def prefetching():
    return [one for one in threading.enumerate() if one.name.startswith("setconv-prefetch")]


def test_the_thread_ends_when_the_iterator_is_closed_and_when_a_row_cannot_be_read(on_disk):
    batches = feed_of(on_disk, scaler_of()).batches(repeat(np.zeros((1, 4), np.int64)))
    next(batches)
    assert prefetching()
    batches.close()
    assert not prefetching()
    batches = feed_of(on_disk, scaler_of()).batches(iter([np.array([[0]]), np.array([[51]])]))
    next(batches)
    with pytest.raises(IndexError):
        next(batches)
    assert not prefetching()
