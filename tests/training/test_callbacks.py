"""What may watch, and stop, a training run."""

import io
import sys

import numpy as np
import pytest

from setconv.classifier import SetConvClassifier
from setconv.errors import DivergedError
from setconv.training.callbacks import Callback, ProgressBar, TrainingState, gather_callbacks


def small(**parameters):
    values = {"n_members": 1, "encoder": (8,), "out_features": 4, "n_episodes": 2, "max_steps": 6}
    return SetConvClassifier(**{**values, "random_state": 0, "progress": False, **parameters})


class Diary(Callback):
    """Writes down what is called, under a name, in a list that several may share."""

    def __init__(self, name="diary", events=None):
        self.name = name
        self.events = [] if events is None else events

    def on_fit_begin(self, state):
        self.events.append((self.name, "begin", state.step))

    def on_step_end(self, state):
        self.events.append((self.name, "step", state.step))

    def on_record(self, state):
        self.events.append((self.name, "record", state.step))

    def on_fit_end(self, state):
        self.events.append((self.name, "end", state.step))


class StopAt(Callback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, state):
        state.stop = state.step >= self.step


class RaiseAt(Callback):
    def __init__(self, step, error):
        self.step, self.error = step, error

    def on_step_end(self, state):
        if state.step == self.step:
            raise self.error


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("members", [1, 3])
def test_a_run_begins_then_records_and_steps_then_ends(members, binary):
    diary = Diary()
    small(n_members=members, callbacks=[diary], max_steps=3).fit(*binary)
    assert diary.events == [
        ("diary", "begin", 0),
        ("diary", "record", 1),
        ("diary", "step", 1),
        ("diary", "record", 2),
        ("diary", "step", 2),
        ("diary", "record", 3),
        ("diary", "step", 3),
        ("diary", "end", 3),
    ]


def test_callbacks_are_called_in_the_order_of_the_list(binary):
    events = []
    small(callbacks=[Diary("first", events), Diary("second", events)], max_steps=2).fit(*binary)
    assert [name for name, _, _ in events] == ["first", "second"] * (len(events) // 2)


def test_a_long_run_is_recorded_a_hundred_times(binary):
    diary = Diary()
    clf = small(callbacks=[diary], max_steps=200, n_episodes=1, support_size=4).fit(*binary)
    recorded = [step for _, event, step in diary.events if event == "record"]
    assert recorded == [*range(2, 201, 2)]
    assert [record["step"] for record in clf.history_] == recorded


@pytest.mark.parametrize("members", [1, 3])
def test_a_callback_stops_the_run_after_the_step_in_which_it_says_so(members, binary):
    clf = small(n_members=members, callbacks=[StopAt(4)]).fit(*binary)
    assert clf.n_steps_ == 4
    assert clf.predict(binary[0]).shape == (len(binary[0]),)


def test_a_callback_that_stops_in_the_beginning_leaves_a_model_without_training(binary):
    class Never(Callback):
        def on_fit_begin(self, state):
            state.stop = True

    stopped, untrained = small(callbacks=[Never()]).fit(*binary), small(max_steps=0).fit(*binary)
    assert stopped.n_steps_ == 0
    assert np.array_equal(stopped.predict_proba(binary[0]), untrained.predict_proba(binary[0]))


@pytest.mark.parametrize("members", [1, 3])
def test_callbacks_do_not_change_the_result(members, binary):
    watched = small(n_members=members, callbacks=[Diary()]).fit(*binary)
    alone = small(n_members=members).fit(*binary)
    assert np.array_equal(watched.representatives_, alone.representatives_)
    assert watched.threshold_ == alone.threshold_


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


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_the_end_is_called_also_when_training_ends_with_an_error(binary, error):
    diary = Diary()
    with pytest.raises(error):
        small(callbacks=[diary, RaiseAt(2, error)]).fit(*binary)
    assert diary.events[-1] == ("diary", "end", 2)


@pytest.mark.parametrize("members", [1, 3])
def test_the_end_is_called_when_training_diverges(members, binary):
    diary = Diary()
    wild = {"lr": 1e35, "scaling": None, "schedule": "constant"}
    with pytest.raises(DivergedError, match="lower lr"):
        small(n_members=members, callbacks=[diary], **wild).fit(*binary)
    assert diary.events[-1][1] == "end"


def test_the_base_class_does_nothing():
    state = TrainingState(max_steps=5)
    callback = Callback()
    for event in ("on_fit_begin", "on_step_end", "on_record", "on_fit_end"):
        assert getattr(callback, event)(state) is None
    assert state == TrainingState(max_steps=5)


def test_a_new_state_has_done_nothing():
    state = TrainingState(max_steps=5)
    assert (state.step, state.history, state.best_step, state.stop) == (0, [], None, False)
    assert np.isnan(state.loss)
    assert state.best_score == -np.inf


# --------------------------------------------------------------------------------- progress bar


def test_progress_true_shows_a_bar_with_the_loss_on_standard_error(binary, capsys):
    small(progress=True).fit(*binary)
    out, err = capsys.readouterr()
    assert out == ""
    assert "SetConv: 100%" in err
    assert "6/6" in err
    assert "loss=" in err


def test_the_bar_shows_the_figure_on_the_validation_rows(binary, capsys):
    small(progress=True, early_stopping=True).fit(*binary)
    assert "validation=" in capsys.readouterr().err


@pytest.mark.parametrize("progress", [False, "auto"])
def test_no_bar_is_shown_without_being_asked_for(binary, capsys, progress):
    small(progress=progress).fit(*binary)
    assert capsys.readouterr() == ("", "")


def test_auto_shows_a_bar_on_a_terminal(binary, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    small(progress="auto").fit(*binary)
    assert "SetConv: 100%" in terminal.getvalue()


@pytest.mark.parametrize(
    ("progress", "terminal", "wanted"),
    [
        ("auto", True, True),
        ("auto", False, False),
        (True, False, True),
        (False, True, False),
    ],
)
def test_a_bar_is_wanted_where_it_can_be_read_or_was_asked_for(
    monkeypatch, progress, terminal, wanted
):
    monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
    assert bool(gather_callbacks([], progress)) is wanted


def test_the_bar_is_closed_when_training_fails(binary, capsys):
    with pytest.raises(RuntimeError):
        small(progress=True, callbacks=[RaiseAt(2, RuntimeError)]).fit(*binary)
    assert capsys.readouterr().err.endswith("\n")


def test_a_bar_that_goes_on_from_a_checkpoint_starts_there(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    state = TrainingState(max_steps=10, step=7)
    bar = ProgressBar()
    bar.on_fit_begin(state)
    bar.on_fit_end(state)
    assert "7/10" in terminal.getvalue()
