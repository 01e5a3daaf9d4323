"""The page: what it says is true, it is the same every time, and no text can break it."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from reading import HOSTILE, Page, number
from text_models import TextModel, write_texts

from setconv.classifier import SetConvClassifier
from setconv.errors import DataError, ParameterError
from setconv.metrics.report import WHY_NOT_THE_LARGEST
from setconv.report.page import ReportPage, make_report

# ----------------------------------------------------------------------------------------- values


def test_the_page_says_where_similar_rows_come_from(text_page, multiclass_page, fitted, binary):
    assert "training rows that lie closest" in Page(text_page.html).text
    assert "closest rows are of this class" not in text_page.html
    assert "no training rows were given" in Page(multiclass_page.html).text
    page = Page(make_report(fitted, *binary, train=binary, n_bootstrap=5).html)
    assert "Rows are numbered from 0, as X has them." in page.text
    assert "Training rows are numbered from 0, as train has them." in page.text


def test_baselines_stand_beside_the_model_and_are_right(text_page):
    rows = [row for row in Page(text_page.html).section_rows("figures") if len(row) == 8]
    by_name = {row[0]: row for row in rows[1:]}
    assert list(by_name) == ["This model", "always calm", "no scores"]
    assert number(by_name["always calm"][1]) == 1.0
    assert number(by_name["always calm"][2]) == 0.0
    assert number(by_name["always calm"][6]) == 0.5
    assert "this model is better" in by_name["always calm"][2]
    assert by_name["no scores"][6] == "n/a"
    assert number(by_name["no scores"][4]) == 1.0


def test_the_words_of_a_class_are_named_beside_its_representative(text_page):
    rows = Page(text_page.html).section_rows("meaning")
    words = [row[0].split()[0] for row in rows[1:]]
    assert words[0] in {"smoke", "flames", "burning"}
    assert len({"smoke", "flames", "burning"} & set(words[:4])) >= 2


def test_features_are_explained_by_name_and_texts_can_be_shown_beside_them(fitted, binary):
    X, y = binary
    names = [f"$sensor_{number}" for number in range(8)]
    page = Page(make_report(fitted, X, y, feature_names=names, n_bootstrap=5).html)
    assert {row[0].split()[0] for row in page.section_rows("meaning")[1:]} == set(names)
    texts = [f"machine number {row}" for row in range(len(X))]
    page = Page(make_report(fitted, X, y, texts=texts, n_bootstrap=5).html)
    assert "machine number" in page.text
    assert "the model does not read the texts itself" in page.text


# -------------------------------------------------------------------------- training rows, names


def test_a_training_text_is_never_likened_to_its_copies(copied):
    model, texts, labels = copied
    page = Page(make_report(model, texts, labels, out_of_fold=True, n_bootstrap=5).html)
    own = [int(text.rsplit(" ", 1)[1]) for text in page.of_class("verdicts")]
    near = [int(re.search(r"training row: row (\d+)", one)[1]) for one in page.of_class("near")]
    assert len(own) == len(near) > 0
    assert {0, 60, 2, 62} & set(own)
    for row, other in zip(own, near, strict=True):
        assert texts[row].split() != texts[other].split()
        assert texts[row].lower().split() != texts[other].lower().split()


def test_rows_have_the_names_that_are_given_and_a_command_explains_them(fitted, binary):
    X, y = binary
    asked = []
    names = [f"id-{row} (row {row + 2})" for row in range(len(X))]
    train_names = [f"t{row}" for row in range(len(X))]
    page = make_report(
        fitted,
        X + 0.1,
        1 - y,
        train=(X, 1 - y),
        row_names=names,
        train_row_names=train_names,
        explain=lambda rows: asked.extend(rows) or f"explain --rows {rows} 'a & b'",
        n_bootstrap=5,
    )
    page = Page(page.html)
    assert len(asked) == 10
    assert f"To look closer: explain --rows {asked} 'a & b'" in page.text
    shown = [text.split(" · ")[-1] for text in page.of_class("verdicts")]
    assert shown == [names[row] for row in asked]
    near = [re.search(r"training row: (\S+) \(", text)[1] for text in page.of_class("near")]
    assert set(near) <= set(train_names)
    assert "numbered from 0" not in page.text


def test_the_objective_is_that_of_the_fit_whatever_the_parameter_became(binary):
    X, y = binary
    small = {"n_members": 3, "max_steps": 5, "random_state": 0, "progress": False}
    model = SetConvClassifier(objective="f1", **small).fit(X, y)
    model.set_params(objective=None)
    page = Page(make_report(model, X, y, n_bootstrap=5).html)
    assert "The decision was set for “f1”" in page.text
    assert "made for equally frequent classes" not in page.text
    assert WHY_NOT_THE_LARGEST in page.text


def test_a_model_without_rows_that_it_left_out_cannot_be_judged_by_them(binary):
    X, y = binary
    model = SetConvClassifier(n_members=1, max_steps=5, random_state=0, progress=False).fit(X, y)
    with pytest.raises(ParameterError):
        make_report(model, X, y, out_of_fold=True)


def test_baselines_of_all_training_rows_are_judged_on_those_left_out(fitted, binary):
    X, y = binary
    said = fitted.predict_out_of_fold()
    names = ("labels", "probabilities", "scores", "decision_values", "rows", "truth")
    odd = {name: getattr(said, name)[1::2] for name in names}
    half = replace(said, **odd, left_out=said.left_out[:, 1::2])
    baselines = {"perfect": (y, y - 0.5)}
    html = make_report(fitted, X, y, predictions=half, baselines=baselines, n_bootstrap=5).html
    page = Page(html)
    assert "come from 120 labelled rows: those of the 240 training rows" in page.text
    *_, last = (row for row in page.section_rows("figures") if len(row) == 8)
    assert [last[0], *map(number, last[1:])] == ["perfect", *[1.0] * 7]


# ------------------------------------------------------------------------------------ determinism


def test_the_same_input_gives_the_same_bytes(fitted, binary):
    X, y = binary
    first, second = (make_report(fitted, X, y, n_bootstrap=20, seed=3) for _ in range(2))
    assert first.html == second.html
    assert first.html != make_report(fitted, X, y, n_bootstrap=20, seed=4).html


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
    assert "url(http" not in text_page.html
    assert "@import" not in text_page.html
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


def test_a_page_can_be_read_without_seeing_it(text_page, multiclass_page):
    for page in (text_page, multiclass_page):
        elements = Page(page.html).elements
        ids = [one.given["id"] for one in elements if "id" in one.given]
        assert len(ids) == len(set(ids))
        plots = [one.given for one in elements if one.given.get("class") == "plot"]
        assert len(plots) == 5
        assert all(one["role"] == "img" and len(one["aria-label"]) > 40 for one in plots)
        assert all("scope" in one.given for one in elements if one.tag == "th")


def test_any_unicode_in_a_text_gives_a_page_that_can_be_saved(tmp_path):
    texts, labels = write_texts(80)
    strange = ["\x00", "\ud800 smoke", "شريان \u202e abc", "🔥" * 50, "\u2028", "x" * 5000]
    texts = [f"{text} {strange[row % len(strange)]}" for row, text in enumerate(texts)]
    page = make_report(TextModel().fit(texts, labels), texts, labels[::-1], n_bootstrap=5)
    saved = page.save(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "\x00" not in saved
    assert len(saved) < 500_000


# ------------------------------------------------------------------------------------- small input


@pytest.mark.parametrize("kind", ["bools", "integers", "series"])
def test_labels_of_any_kind_are_shown(kind, binary):
    X, y = binary
    words = pd.Series(np.where(y == 1, "rare", "usual"), index=range(5, 5 + len(y)))
    kinds = {"bools": (y == 1, "True"), "integers": (y + 7, "8"), "series": (words, "rare")}
    labels, name = kinds[kind]
    model = SetConvClassifier(n_members=1, max_steps=5, random_state=0, progress=False)
    page = Page(make_report(model.fit(X, labels), X, labels, n_bootstrap=5).html)
    assert page.ids["x-name"] == name


def test_a_model_without_mistakes_or_history_has_a_page_too(fitted, binary):
    X, _ = binary

    class Bare:
        def __getattr__(self, name):
            if name in ("history_", "class_counts_", "objective"):
                raise AttributeError(name)
            return getattr(fitted, name)

    page = Page(make_report(Bare(), X, fitted.predict(X), n_bootstrap=5).html)
    assert "all 240 rows are decided rightly" in page.text
    assert "no record of its training" in page.text


def test_a_page_stays_small_and_its_data_bounded(fitted, binary):
    X, y = binary
    rng = np.random.default_rng(0)
    many = np.repeat(X, 40, axis=0) + rng.normal(size=(40 * len(X), 8)) / 3
    page = make_report(fitted, many, np.repeat(y, 40), n_bootstrap=100)
    assert len(page.html) < 600_000
    assert len(Page(page.html).explorer()[0]["cuts"]) <= 2000
    assert "of a sample of 1,500" in page.html


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
        ("n_bootstrap", {"n_bootstrap": 0}),
    ]
    for parameter, changed in cases:
        with pytest.raises((DataError, ParameterError)) as refused:
            make_report(fitted, **{"X": X, "y": y, "n_bootstrap": 5, **changed})
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
