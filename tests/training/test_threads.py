"""Threads of a training run: one where steps are small, and as before after it, always."""

import pytest
import torch

from setconv.training.loop import threads_for


@pytest.fixture(autouse=True)
def _two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("operations", "threads"), [(1e6, 1), (1e10, 2)])
def test_small_steps_are_taken_by_one_thread_and_large_ones_by_all(operations, threads):
    with threads_for(operations):
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 2


def test_the_number_of_threads_is_put_back_when_something_fails():
    with pytest.raises(KeyboardInterrupt), threads_for(1e6):
        raise KeyboardInterrupt
    assert torch.get_num_threads() == 2
