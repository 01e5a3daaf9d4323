"""Batches that are prepared ahead: order, errors, and an end to the thread."""

import threading

import pytest

from setconv.io.disk import Prefetcher


def threads():
    return [one for one in threading.enumerate() if one.name.startswith("setconv-prefetch")]


def test_results_come_in_the_order_that_was_drawn():
    with Prefetcher(range(20), lambda number: number**2) as results:
        assert list(results) == [number**2 for number in range(20)]
        assert list(results) == []
    assert not threads()


def test_nothing_drawn_is_nothing_prepared():
    assert list(Prefetcher([], str)) == []


def test_the_next_are_prepared_while_the_caller_works_and_no_more():
    prepared = [threading.Event() for _ in range(6)]

    def prepare(number):
        prepared[number].set()
        return number

    drawn = []

    def draw():
        for number in range(6):
            drawn.append((number, threading.current_thread()))
            yield number

    with Prefetcher(draw(), prepare) as results:
        assert next(results) == 0
        assert prepared[1].wait(10)
        assert prepared[2].wait(10)
        assert not prepared[3].is_set()
        assert drawn == [(number, threading.main_thread()) for number in range(3)]


def test_all_work_is_done_by_one_other_thread():
    with Prefetcher(range(10), lambda _: threading.get_ident()) as results:
        workers = set(results)
    assert len(workers) == 1
    assert threading.get_ident() not in workers


def test_an_error_reaches_the_caller_when_its_turn_comes():
    def prepare(number):
        if number == 3:
            raise ValueError("three")
        return number

    with Prefetcher(range(10), prepare) as results:
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ValueError, match="three"):
            next(results)
    assert not threads()


def test_an_error_in_the_draw_comes_after_what_was_drawn():
    def draw():
        yield 0
        yield 1
        raise ValueError("drawn out")

    with Prefetcher(draw(), str) as results:
        assert next(results) == "0"
        assert next(results) == "1"
        with pytest.raises(ValueError, match="drawn out"):
            next(results)
        assert list(results) == []


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_leaving_early_stops_the_thread(failure):
    prepared = []
    results = Prefetcher(range(1000), prepared.append)

    def work():
        with results:
            next(results)
            raise failure

    with pytest.raises(failure):
        work()
    assert not threads()
    assert len(prepared) <= 3
    assert list(results) == []
