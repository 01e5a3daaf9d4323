"""Where training takes its rows from: every feed gives what plain indexing gives."""

import threading
from itertools import repeat

import numpy as np
import pytest
import torch
from scipy import sparse

from setconv.io.disk import RowSubset
from setconv.io.opening import Source, open_source
from setconv.preprocessing import fit_scaler
from setconv.training.batches import LazyFeed, MemoryFeed, open_feed, view_of_groups

CPU = torch.device("cpu")
ROWS = np.random.default_rng(0).standard_normal((50, 7)).astype(np.float32)
WEIGHTS = np.ones(50)


@pytest.fixture
def on_disk(tmp_path):
    """The rows in a file, open."""
    mapped = np.memmap(tmp_path / "rows.bin", np.float32, "w+", shape=ROWS.shape)
    mapped[:] = ROWS
    mapped.flush()
    with open_source(mapped) as source:
        assert isinstance(source, Source)
        yield source.rows


def scaler_of(*names):
    return fit_scaler(names, ROWS, WEIGHTS)


def draw(*shape, count=4, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 50, shape) for _ in range(count)]


def plain(scaler, drawn, n_members):
    """The rows of a draw by plain indexing, member by member."""
    views = scaler(ROWS)
    if drawn.ndim == 2:
        return views[0][drawn]
    heads = len(drawn) // n_members
    return np.stack([views[place // heads % len(views)][one] for place, one in enumerate(drawn)])


VIEWS = [(), ("standard",), ("standard", "normal"), ("standard", "normal", "pieces")]


@pytest.mark.parametrize("views", VIEWS, ids=str)
@pytest.mark.parametrize("members", [3, 4])
@pytest.mark.parametrize("heads", [1, 2])
def test_rows_in_memory_are_those_of_each_members_view(views, members, heads):
    scaler = scaler_of(*views)
    feed = open_feed(ROWS, scaler, CPU, members)
    assert isinstance(feed, MemoryFeed)
    draws = draw(members * heads, 2, 5)
    for drawn, (told, rows) in zip(draws, feed.batches(iter(draws)), strict=True):
        assert np.array_equal(told, drawn)
        assert np.array_equal(rows.numpy(), plain(scaler, drawn, members))


@pytest.mark.parametrize("views", VIEWS, ids=str)
@pytest.mark.parametrize("members", [3, 4])
@pytest.mark.parametrize("heads", [1, 2])
def test_rows_on_disk_are_those_of_each_members_view(on_disk, views, members, heads):
    scaler = scaler_of(*views)
    feed = open_feed(on_disk, scaler, CPU, members)
    assert isinstance(feed, LazyFeed)
    draws = draw(members * heads, 2, 5)
    for drawn, (told, rows) in zip(draws, feed.batches(iter(draws)), strict=True):
        assert np.array_equal(told, drawn)
        np.testing.assert_allclose(rows.numpy(), plain(scaler, drawn, members), rtol=1e-6)


@pytest.mark.parametrize("views", VIEWS[:2], ids=str)
def test_one_member_draws_without_an_axis_of_groups(on_disk, views):
    scaler = scaler_of(*views)
    draws = draw(3, 6)
    for features in (ROWS, on_disk):
        feed = open_feed(features, scaler, CPU, 1)
        for drawn, (_, rows) in zip(draws, feed.batches(iter(draws)), strict=True):
            assert rows.shape == (3, 6, 7)
            assert np.array_equal(rows.numpy(), plain(scaler, drawn, 1))


def test_chosen_rows_on_disk_count_from_the_chosen(on_disk):
    chosen = np.array([40, 3, 3, 11, 0])
    feed = open_feed(RowSubset(on_disk, chosen), scaler_of(), CPU, 1)
    drawn = np.array([[4, 0], [1, 2]])
    ((_, rows),) = feed.batches(iter([drawn]))
    assert np.array_equal(rows.numpy(), ROWS[chosen][drawn])


@pytest.mark.parametrize("shape", [(3, 6), (4, 3, 6)])
def test_sparse_rows_are_made_dense_as_they_are_drawn(shape):
    counts = sparse.csr_matrix(np.random.default_rng(1).poisson(0.3, (50, 20)), dtype=np.float32)
    feed = open_feed(counts, scaler_of(), CPU, 4)
    assert isinstance(feed, LazyFeed)
    draws = draw(*shape)
    for drawn, (told, rows) in zip(draws, feed.batches(iter(draws)), strict=True):
        assert np.array_equal(told, drawn)
        assert np.array_equal(rows.numpy(), counts.toarray()[drawn])


@pytest.mark.parametrize("size", [7, 50, 8192])
@pytest.mark.parametrize("views", VIEWS, ids=str)
def test_chunks_are_all_rows_in_order_in_all_views(on_disk, monkeypatch, views, size):
    monkeypatch.setattr("setconv.training.batches._CHUNK", size)
    scaler = scaler_of(*views)
    for features in (ROWS, on_disk):
        parts, chunks = zip(*open_feed(features, scaler, CPU, 3).chunks(), strict=True)
        assert [part.stop - part.start for part in parts] == [one.shape[1] for one in chunks]
        assert np.concatenate([np.arange(50)[part] for part in parts]).tolist() == list(range(50))
        np.testing.assert_allclose(torch.cat(chunks, dim=1).numpy(), scaler(ROWS), rtol=1e-6)


def test_views_take_turns_by_member_not_by_head():
    assert view_of_groups(6, 3, 2).ravel().tolist() == [0, 0, 1, 1, 0, 0]
    assert view_of_groups(4, 4, 3).ravel().tolist() == [0, 1, 2, 0]


def prefetching():
    return [one for one in threading.enumerate() if one.name.startswith("setconv-prefetch")]


def test_closing_ends_the_thread_that_reads_ahead(on_disk):
    feed = open_feed(on_disk, scaler_of("standard"), CPU, 1)
    batches = feed.batches(repeat(np.zeros((1, 4), np.int64)))
    next(batches)
    assert prefetching()
    batches.close()
    assert not prefetching()


def test_the_thread_ends_with_the_draws(on_disk):
    feed = open_feed(on_disk, scaler_of("standard"), CPU, 1)
    assert len(list(feed.batches(iter(draw(2, 3))))) == 4
    assert not prefetching()


def test_an_error_in_reading_reaches_the_trainer_and_ends_the_thread(on_disk):
    feed = open_feed(on_disk, scaler_of(), CPU, 1)
    with pytest.raises(IndexError, match="no row 50"):
        list(feed.batches(iter([np.array([[50]])])))
    assert not prefetching()
