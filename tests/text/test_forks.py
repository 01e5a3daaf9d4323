"""Texts in forked children of a process that has encoded with several threads."""

import os

import pytest
from fork_work import outcomes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")


def test_children_encode_texts_whatever_another_thread_does(tiny):
    found = outcomes("texts", tiny)
    assert len(found) == 2
    assert set(found.values()) == {"right"}, found
