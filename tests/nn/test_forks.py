"""Forked children of a process that has worked with several threads."""

import os

import pytest
from fork_work import outcomes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")


def test_children_of_a_process_with_threads_work_and_say_the_same(tmp_path):
    found = outcomes("numbers", tmp_path)
    assert len(found) == 8
    assert set(found.values()) == {"right"}, found
