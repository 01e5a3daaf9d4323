"""What may watch, and stop, a training run."""

import io
import sys

import numpy as np
import pytest

from setconv.classifier import SetConvClassifier
from setconv.training import Callback


def small(**parameters):
    values = {"n_members": 1, "encoder": (8,), "out_features": 4, "n_episodes": 2, "max_steps": 6}
    return SetConvClassifier(**{**values, "random_state": 0, "progress": False, **parameters})


class Diary(Callback):
    """Writes down what is called, under a name, in a list that several may share."""

    def __init__(self, name, events):
        self.name, self.events = name, events

    def on_fit_begin(self, state):
        self.events.append((self.name, "begin", state.step))

    def on_step_end(self, state):
        self.events.append((self.name, "step", state.step))

    def on_record(self, state):
        self.events.append((self.name, "record", state.step))

    def on_fit_end(self, state):
        self.events.append((self.name, "end", state.step))


class Fail(Callback):
    def on_step_end(self, _):
        raise RuntimeError


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("members", [1, 3])
def test_a_run_begins_then_records_and_steps_then_ends_in_the_order_of_the_list(members, binary):
    events = []
    watched = small(
        n_members=members, callbacks=[Diary("a", events), Diary("b", events)], max_steps=2
    ).fit(*binary)
    expected = [("begin", 0), ("record", 1), ("step", 1), ("record", 2), ("step", 2), ("end", 2)]
    assert events == [(name, *event) for event in expected for name in ("a", "b")]
    alone = small(n_members=members, max_steps=2).fit(*binary)
    assert np.array_equal(watched.representatives_, alone.representatives_)


def test_the_state_shows_step_loss_history_and_best_look(binary):
    seen = []

    class Look(Callback):
        def on_record(self, state):
            seen.append((state.step, state.loss, state.history[-1], state.best_step))

    clf = small(callbacks=[Look()], early_stopping=True, max_steps=30).fit(*binary)
    for (step, loss, record, best), kept in zip(seen, clf.history_, strict=True):
        assert (step, loss) == (kept["step"], kept["loss"])
        assert record == kept
        assert ("validation" in kept) == (step % 2 == 0)
        assert best is None or best <= step
    assert seen[-1][3] is not None


def test_the_end_is_called_also_when_training_ends_with_an_error(binary):
    events = []
    with pytest.raises(RuntimeError):
        small(callbacks=[Diary("diary", events), Fail()]).fit(*binary)
    assert events[-1][1] == "end"


# --------------------------------------------------------------------------------- progress bar


@pytest.mark.parametrize(
    ("progress", "terminal", "shown"),
    [("auto", True, True), ("auto", False, False), (True, False, True), (False, True, False)],
)
def test_a_bar_is_shown_on_a_terminal_or_where_it_was_asked_for(
    binary, monkeypatch, progress, terminal, shown
):
    err = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", err)
    small(progress=progress, early_stopping=True).fit(*binary)
    for part in ("SetConv: 100%", "6/6", "loss=", "validation="):
        assert (part in err.getvalue()) is shown
