"""How far a command is, where standard error is no terminal: plain lines, now and then."""

import io

import pytest
from tqdm import tqdm

from setconv.cli.options import PlainLines, in_flags


@pytest.fixture
def clock():
    """Seconds that pass when the test says so."""
    return [0.0]


@pytest.fixture
def lines(clock):
    return PlainLines(io.StringIO(), lambda: clock[0])


def test_a_bar_is_a_line_at_its_begin_every_ten_seconds_and_at_its_end(lines, clock):
    with tqdm(
        total=100, desc="encoding", unit="text", file=lines, mininterval=0, miniters=1
    ) as bar:
        for _ in range(100):
            clock[0] += 0.3
            bar.update(1)
    written = lines.getvalue().splitlines()
    assert [line.split(" [")[0] for line in written] == [
        "encoding: 0% 0/100",
        "encoding: 34% 34/100",
        "encoding: 68% 68/100",
        "encoding: 100% 100/100",
    ]
    assert not set("\r\x1b|") & set(lines.getvalue())


def test_other_words_are_written_as_they_come(lines, clock):
    for number in range(25):
        clock[0] += 1
        lines.write(f"\r{number} rows")
        if number == 3:
            lines.write("note: something\n")
    assert lines.getvalue().splitlines() == ["0 rows", "note: something", "10 rows", "20 rows"]


def test_a_fit_and_a_prediction_tell_their_stages(setconv, folder, fitted):
    done, model = fitted
    stages = ("reading", "SetConv: 0% 0/", "saving", "model saved")
    places = [done.err.index(stage) for stage in stages]
    assert places == sorted(places)
    assert "28 rows of 28 28 rows predicted" in setconv("predict", model, folder / "test.csv").err


@pytest.mark.parametrize(
    ("said", "parameter", "translated"),
    [
        ("objective='x': no.", "objective", "--objective 'x': no."),
        ("prior=0.1: with objective=None none.", "prior", "--prior 0.1: with no --objective none."),
        ("time mixes dates and numbers.", "time", "--time mixes dates and numbers."),
        ("time is up, said 'time=x y_true resume_from='.", None, None),
        ("There is no column 'format=csv'. The model's 'y'.", "y", None),
        ("fit without resume_from, or random_state", None, "fit without --resume, or --seed"),
        ("in /data/random_state/x.csv", None, None),
        ("one class (np.str_('x y')) of np.int64(3)", "y", "one class ('x y') of 3"),
        ("Interrupted; go on with fit(..., resume_from='m').", None,
         "Interrupted; go on with the same command and --resume."),
    ],
)  # fmt: skip
def test_the_words_of_the_library_become_flags(said, parameter, translated):
    assert in_flags(said, parameter) == (said if translated is None else translated)
