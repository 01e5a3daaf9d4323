"""The page: what it says is true, it is the same every time, and no text can break it."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from reading import HOSTILE, Page, number
from small_models import small
from text_models import TextModel, write_texts

from setconv.errors import DataError, ParameterError
from setconv.pipelines import SetConvTableClassifier
from setconv.report.page import ReportPage, make_report


def page_of(model, X, y, **given):
    return Page(make_report(model, X, y, **given).html)


# ---------------------------------------------------------------------------------- what is shown


def test_baselines_stand_beside_the_model_and_are_right(text_page):
    rows = [row for row in Page(text_page.html).section_rows("figures") if len(row) == 8]
    ours, calm, bare = rows[1:]
    assert [ours[0], calm[0], bare[0]] == ["This model", "always calm", "no scores"]
    assert [number(calm[column]) for column in (1, 2, 6)] == [1.0, 0.0, 0.5]
    assert "this model is better" in calm[2]
    assert (number(bare[4]), bare[6]) == (1.0, "n/a")


def test_baselines_of_all_training_rows_are_judged_on_those_left_out(fitted, binary):
    said = fitted.predict_out_of_fold()
    names = ("labels", "probabilities", "scores", "decision_values", "rows", "truth")
    odd = {name: getattr(said, name)[1::2] for name in names}
    half = replace(said, **odd, left_out=said.left_out[:, 1::2])
    perfect = {"perfect": (binary[1], binary[1] - 0.5)}
    page = page_of(fitted, *binary, predictions=half, baselines=perfect)
    assert "come from 120 labelled rows: those of the 240 training rows" in page.text
    *_, last = (row for row in page.section_rows("figures") if len(row) == 8)
    assert [last[0], *map(number, last[1:])] == ["perfect", *[1.0] * 7]


def test_words_and_features_stand_beside_their_representative(text_page, fitted, binary):
    rows = Page(text_page.html).section_rows("meaning")
    assert len({"smoke", "flames", "burning"} & {row[0].split()[0] for row in rows[1:5]}) >= 2
    names = [f"$sensor_{number}" for number in range(8)]
    texts = [f"machine number {row}" for row in range(240)]
    page = page_of(fitted, *binary, feature_names=names)
    assert {row[0].split()[0] for row in page.section_rows("meaning")[1:]} == set(names)
    assert "machine number" in page_of(fitted, *binary, texts=texts).section("mistakes")


def test_a_training_text_is_never_likened_to_its_copies(copied):
    model, texts, labels = copied
    page = page_of(model, texts, labels, out_of_fold=True)
    own = [int(text.rsplit(" ", 1)[1]) for text in page.of_class("verdicts")]
    near = [int(re.search(r"training row: row (\d+)", one)[1]) for one in page.of_class("near")]
    assert {0, 60, 2, 62} & set(own)
    for row, other in zip(own, near, strict=True):
        assert texts[row].lower().split() != texts[other].lower().split()


def test_rows_have_the_names_that_are_given_and_a_command_explains_them(fitted, binary):
    X, y = binary
    asked, names = [], [f"id-{row} (row {row + 2})" for row in range(240)]
    given = {"row_names": names, "train_row_names": [f"t{row}" for row in range(240)]}
    given["explain"] = lambda rows: asked.extend(rows) or f"explain --rows {rows} 'a & b'"
    page = page_of(fitted, X + 0.1, 1 - y, train=(X, 1 - y), **given)
    assert len(asked) == 10
    assert f"To look closer: explain --rows {asked} 'a & b'" in page.text
    shown = [text.split(" · ")[-1] for text in page.of_class("verdicts")]
    assert shown == [names[row] for row in asked]
    assert all(re.search(r"training row: t\d+ \(", text) for text in page.of_class("near"))


@pytest.mark.parametrize("kind", ["bools", "series"])
def test_labels_of_any_kind_are_shown(kind, binary):
    X, y = binary
    words = pd.Series(np.where(y == 1, "rare", "usual"), index=range(5, 5 + len(y)))
    labels, name = {"bools": (y == 1, "True"), "series": (words, "rare")}[kind]
    assert page_of(small().fit(X, labels), X, labels).ids["x-name"] == name


def test_a_model_without_a_history_has_a_page_too(fitted, binary):
    class Bare:
        def __getattr__(self, name):
            if name in ("history_", "class_counts_", "objective"):
                raise AttributeError(name)
            return getattr(fitted, name)

    assert "no record of its training" in page_of(Bare(), *binary).text


def test_a_page_stays_small_and_its_data_bounded(fitted, binary, rng):
    many = np.repeat(binary[0], 40, axis=0) + rng.normal(size=(9600, 8)) / 3
    page = make_report(fitted, many, np.repeat(binary[1], 40))
    assert len(page.html) < 600_000
    assert len(Page(page.html).explorer()[0]["cuts"]) <= 2000
    assert "of a sample of 1,500" in page.html


# ------------------------------------------------------------------------------------ determinism


def test_the_same_input_gives_the_same_bytes(fitted, binary):
    first, second = (make_report(fitted, *binary).html for _ in range(2))
    assert first == second


def test_a_saved_page_is_whole_and_alone(text_page, tmp_path):
    path = text_page.save(str(tmp_path / "new" / "report.html"))
    assert path.read_bytes().decode("utf-8") == text_page.html
    assert [one.name for one in path.parent.iterdir()] == ["report.html"]
    ReportPage("other").save(path)
    assert path.read_text() == "other"


# ----------------------------------------------------------------------------------------- safety


def test_a_page_names_no_address_and_loads_nothing(text_page):
    elements = Page(text_page.html).elements
    loading = ("src", "href", "action", "data", "srcset")
    sources = {value for one in elements for name, value in one.given.items() if name in loading}
    assert all(one.startswith("#") or one == "data:," for one in sources)
    assert not re.search(r"url\(http|@import", text_page.html)
    (policy,) = (one.given["content"] for one in elements if "http-equiv" in one.given)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_hostile_texts_stay_text_everywhere(hostile_page):
    page = Page(hostile_page.html)
    tags = [one.tag for one in page.elements]
    assert {"img", "b"}.isdisjoint(tags)
    assert tags.count("script") == hostile_page.html.count("</script>") == 2
    assert not any(name.startswith("on") for one in page.elements for name in one.given)
    assert HOSTILE.split("\u2028")[0] in page.text
    assert page.explorer()[0]["name"].startswith("fire </script><img")


@pytest.mark.parametrize("name", ["two", "three"])
def test_a_page_can_be_read_without_seeing_it(cases, name):
    page = cases[name].page
    assert len(page.ids) == sum("id" in one.given for one in page.elements)
    plots = [one.given for one in page.elements if one.given.get("class") == "plot"]
    assert len(plots) == 5
    assert all(one["role"] == "img" and len(one["aria-label"]) > 40 for one in plots)
    assert all("scope" in one.given for one in page.elements if one.tag == "th")


def test_any_unicode_in_a_text_gives_a_page_that_can_be_saved(tmp_path):
    texts, labels = write_texts(80)
    strange = ["\x00", "\ud800 smoke", "شريان \u202e abc", "🔥" * 50, "\u2028", "x" * 5000]
    texts = [f"{text} {strange[row % len(strange)]}" for row, text in enumerate(texts)]
    page = make_report(TextModel().fit(texts, labels), texts, labels[::-1])
    saved = page.save(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "\x00" not in saved
    assert len(saved) < 500_000


# ----------------------------------------------------------------------------------------- errors


def test_bad_arguments_are_named(fitted, binary):
    X, y = binary
    cases = [
        ("y", {"y": y[:-1]}),
        ("y", {"X": X[:0], "y": y[:0]}),
        ("y", {"y": y.astype(str)}),
        ("y", {"y": y[:, None]}),
        ("texts", {"texts": ["a"]}),
        ("row_names", {"row_names": ["a"]}),
        ("train_row_names", {"train": (X, y), "train_row_names": ["a"]}),
        ("predictions", {"predictions": fitted.predictions(X[:5])}),
        ("out_of_fold", {"out_of_fold": True, "y": 1 - y}),
        ("out_of_fold", {"out_of_fold": True, "X": X[:9], "y": y[:9]}),
        ("feature_names", {"feature_names": ["a"]}),
        ("train", {"train": (X, y[:-1])}),
        ("train", {"train": X}),
        ("baselines", {"baselines": {"b": (y[:-1], None)}}),
        ("baselines", {"baselines": {"b": (y, np.zeros(3))}}),
        ("baselines", {"baselines": {"b": 3}}),
    ]
    for parameter, changed in cases:
        with pytest.raises((DataError, ParameterError)) as refused:
            make_report(fitted, **{"X": X, "y": y, **changed})
        assert refused.value.parameter == parameter


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named_with_the_line_that_installs_it(package):
    program = f"import sys; sys.modules[{package!r}] = None; import setconv.report"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert f"the report needs {package}: pip install 'setconv[report]'" in done.stderr


def test_no_global_state_of_matplotlib_is_touched():
    program = """
import sys
import setconv.report
import matplotlib
assert "matplotlib.pyplot" not in sys.modules
assert "torch" not in sys.modules, "a page can be written without torch"
assert matplotlib.rcParams["svg.fonttype"] == "path"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_table_with_categories_and_gaps_is_judged_as_its_classifier_sees_it():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200), "c": rng.choice(["NL", "DE"], 200)})
    y = (table["a"] + (table["c"] == "NL") > 1).to_numpy()
    table.loc[::9, "a"] = np.nan
    model = SetConvTableClassifier(classifier=small()).fit(table, y)
    names = model.encoder_.get_feature_names_out()
    page = make_report(model, table, y)
    rows = make_report(model.classifier_, model.encode(table), y, feature_names=names)
    assert "c=NL" in page.html
    assert page.html == rows.html


def test_dates_are_dates_on_the_page():
    rng = np.random.default_rng(0)
    late = np.arange(120) >= 90
    days = np.datetime64("2024-03-01") + (rng.integers(0, 40, 120) + 30 * late)
    table = pd.DataFrame({"seen": days.astype("datetime64[s]"), "size": rng.normal(size=120)})
    y = np.where(late, "late", "early")
    model = SetConvTableClassifier(classifier=small(max_steps=30)).fit(table, y)
    html = make_report(model, table, y).html
    assert re.search(r"seen = 2024-0[345]-\d\d ", html)
    assert re.search(r">2024-0[345]-\d\d, usually 2024-0[345]-\d\d<", html)
    assert not re.search(r"1\.9\d+e\+04", html)


def test_a_page_is_written_into_a_device_and_behind_a_link(tmp_path):
    full, link = tmp_path / "full.html", tmp_path / "link.html"
    full.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        ReportPage("words").save(full)
    assert full.resolve().is_char_device()
    link.symlink_to(tmp_path / "page.html")
    ReportPage("words").save(link)
    assert link.is_symlink()
    assert (tmp_path / "page.html").read_text() == "words"
