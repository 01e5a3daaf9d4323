"""Pages that the commands write: the figures of the terminal, and rows as the file numbers them."""

import json
import math
import shlex

import numpy as np
import pytest
from printed import page_command, page_figures, page_mistakes, read_rows, read_table
from user_files import write_csv, write_noise

import setconv as library

SKIPPED = (2, 5, 9)


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """Noise with names, in which three rows have no label."""
    place = tmp_path_factory.mktemp("noise")
    rows = read_rows(write_noise(place / "noise.csv"))
    for number in SKIPPED:
        rows[number - 1]["kind"] = ""
    named = [[f"N-{number}", *row.values()] for number, row in enumerate(rows, 1)]
    return write_csv(place / "noise of mine.csv", named, ("name", *rows[0]))


@pytest.fixture(scope="module")
def fitted_noise(setconv, noise):
    """What a fit to noise printed, its model and its page."""
    model, page = noise.with_name("model"), noise.with_name("fit.html")
    done = setconv(
        *("fit", noise, "--label", "kind", "--empty", "skip", "--id", "name", "-o", model),
        *("--report", page),
    )
    return done, model, page.read_text(encoding="utf-8")


def test_on_noise_terminal_and_page_show_that_there_is_nothing(noise, fitted_noise):
    done, _, page = fitted_noise
    kinds = [row["kind"] for row in read_rows(noise)]
    n1, n0 = kinds.count("rare"), kinds.count("common")
    found = read_table(done.out)["rare"]
    assert found[5] <= 0.5 + 4 * math.sqrt((n1 + n0 + 1) / (12 * n1 * n0))
    assert page_figures(page) == found


def test_the_page_of_a_fit_calls_rows_as_the_file_does(setconv, noise, fitted_noise):
    _, model, page = fitted_noise
    rows = read_rows(noise)
    kept = np.array([n for n, row in enumerate(rows, 1) if row["kind"]])
    found = library.load(model).predict_out_of_fold()
    decided = dict(zip(kept[found.rows].tolist(), found.labels.tolist(), strict=True))
    numbers = []
    for truth, taken, name in page_mistakes(page):
        number = int(name.partition(" ")[0].removeprefix("N-"))
        assert name == f"N-{number} (row {number})"
        assert (truth, taken) == (rows[number - 1]["kind"], decided[number])
        assert truth != taken
        numbers.append(number)
    assert max(numbers) > max(SKIPPED)
    program, *command = shlex.split(page_command(page))
    assert program == "setconv"
    explained = json.loads(setconv(*command, "--json").out)
    assert [(one["row"], one["id"]) for one in explained] == [(n, f"N-{n}") for n in numbers]


@pytest.mark.parametrize("prior", [None, 0.02])
def test_the_page_of_an_evaluation(setconv, noise, fitted_noise, prior, tmp_path):
    options = [] if prior is None else ["--prior", prior]
    command = ("evaluate", fitted_noise[1], noise, "--empty", "skip", *options)
    done = setconv(*command, "--report", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page_figures(page) == read_table(done.out)["rare"]
    assert ("weighted to the prevalence" in page) == (prior is not None)
    setconv("predict", fitted_noise[1], noise, "-o", tmp_path / "out.csv", *options)
    rows = read_rows(tmp_path / "out.csv")
    mistakes = page_mistakes(page)
    assert mistakes
    for truth, taken, name in mistakes:
        row = rows[int(name.removeprefix("row ")) - 1]
        assert (truth, taken) == (row["kind"], row["predicted_label"])
    names = ",".join(name.removeprefix("row ") for _, _, name in mistakes)
    expected = ["setconv", "explain", str(fitted_noise[1]), str(noise), "--rows", names]
    assert shlex.split(page_command(page)) == expected
