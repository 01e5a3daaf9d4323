"""The page of a study: it says everything, in a browser too, and runs and fetches nothing."""

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from figure_findings import HOSTILE, VERSIONS, make_findings, make_unit

from setconv.experiment.page import study_page, write_page

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TALL = {"width": 1200, "height": 900}


class Read(HTMLParser):
    """The texts and table rows of the sections, and all tags with their attributes."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.sections, self.rows, self._section = [], {"": ""}, {"": []}, ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag == "section":
            self._section = dict(attributes)["id"]
            self.sections[self._section], self.rows[self._section] = "", []
        if tag == "tr":
            self.rows[self._section].append([])
        if tag in ("td", "th"):
            self.rows[self._section][-1].append("")

    def handle_data(self, data):
        self.sections[self._section] += data
        if self.rows[self._section] and self.rows[self._section][-1]:
            self.rows[self._section][-1][-1] += data

    def tagged(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def findings():
    return make_findings(
        settings=(1000, 2000, 4000),
        failed=[("unit 2", "IHT")],
        missing=7,
        published=[("unit 0", "SetConv", "f1", 0.913, 0.012), ("city", "IHT", "f1", 0.7, np.nan)],
        notes=("The unit 0 is a stand-in.",),
    )


@pytest.fixture(scope="module")
def html(findings):
    return study_page(findings)


@pytest.fixture(scope="module")
def hostile():
    """Every text that a user can give is an attack."""
    made = make_findings(
        units=[make_unit(0, HOSTILE), make_unit(1, f"1 {HOSTILE}")],
        methods=[HOSTILE, "m" * 150, "日本"],
        ours=[HOSTILE],
        metrics=("f1", "specificity", "sensitivity"),
        settings=(1, 50),
        failed=[(HOSTILE, "日本")],
        published=[(HOSTILE, HOSTILE, "f1", 0.9, np.nan)],
        title=HOSTILE,
        about=HOSTILE,
        command=HOSTILE,
        notes=(HOSTILE + "\x00\ud800",),
    )
    made.cells["error"] = HOSTILE + "\x00"
    made.cells["versions"] = json.dumps({HOSTILE: HOSTILE})
    made.cells["notes"] = json.dumps({"warnings": [HOSTILE]})
    made.curves["curve"] = HOSTILE
    return made


@pytest.fixture(scope="module")
def hostile_html(hostile):
    return study_page(hostile)


# ----------------------------------------------------------------------------- what the page says


def test_the_page_has_a_section_for_everything(html):
    assert list(Read(html).sections)[1:] == [
        "state",
        "data",
        "figures",
        "curves",
        "scores-by-unit",
        "scores-by-metric",
        "average-ranks",
        "along-a-parameter",
        "published-figures",
        "cost",
        "failed-cells",
        "versions",
        "notes",
    ]


def test_the_page_says_what_the_study_is_and_how_far_it_is(findings, html):
    said = Read(html).sections
    assert findings.title in said[""]
    assert findings.about in said[""]
    assert findings.command in said["state"]
    state = " ".join(said["state"].split())
    assert "44of 55 cells finished" in state
    assert "4failed" in state
    assert "7not computed yet" in state
    assert "The unit 0 is a stand-in." in said["notes"]


def test_the_page_has_the_data_with_rows_and_imbalance_ratio(html):
    row = [text.strip() for text in Read(html).rows["data"][2]]
    assert row == ["unit 1", "unit 1", "rare", "2,000", "6.25", "unit 1"]


def test_the_page_has_scores_failures_costs_and_published_figures(findings, html):
    said = Read(html).sections
    chosen = findings.scores.query("unit == 'unit 0' and method == 'SetConv' and metric == 'auc'")
    shown = f"{chosen['value'].mean():.3f} ± {chosen['value'].std():.3f}".replace("0.", ".")
    assert shown in said["scores-by-unit"]
    assert shown in said["scores-by-metric"]
    assert ".913 ± .012" in said["scores-by-unit"]
    assert "city" in said["published-figures"]
    assert "ValueError: no rows <b>" in said["failed-cells"]
    assert "fewer than 10" in said["average-ranks"]
    assert "median seconds" in said["cost"]


def test_differing_versions_are_listed_with_the_cells_that_have_them():
    made = make_findings(n_units=1, metrics=("f1",))
    made.cells.loc[0, "versions"] = json.dumps({**VERSIONS, "numpy": "1.26.0"})
    made.cells.loc[1, "versions"] = ""
    said = Read(study_page(made)).sections["versions"]
    assert "1.26.0 (1 cell), 2.1.0 (14 cells)" in said
    assert "different versions of numpy." in said


def test_what_cells_warned_of_is_counted():
    made = make_findings(n_units=1, metrics=("f1",))
    made.cells.loc[:2, "notes"] = json.dumps({"warnings": ["fell back", "fell back"]})
    page = Read(study_page(made))
    assert "What 3 cells warned of" in page.sections["warnings"]
    assert [text.strip() for text in page.rows["warnings"][1]] == [
        *("unit 0", "SetConv", "3", "fell back")
    ]


def test_every_figure_has_words_for_those_who_cannot_see_it(html):
    page = Read(html)
    figures = page.tagged("img")
    assert all(len(one["alt"]) > 100 for one in figures)
    assert all(one["src"].startswith("data:image/svg+xml;base64,") for one in figures)
    assert len(page.tagged("figcaption")) == len(page.tagged("figure")) == len(figures) == 4
    assert all(one.get("scope") in ("col", "row") for one in page.tagged("th"))


def test_no_name_stands_twice_in_the_page(html):
    names = [attributes["id"] for _, attributes in Read(html).tags if "id" in attributes]
    assert len(names) == len(set(names))
    targets = re.findall(r'(?:href="#|url\(#)([^")]+)', html)
    assert set(targets) <= set(names)


def test_the_page_runs_nothing_and_fetches_nothing(html):
    page = Read(html)
    (policy,) = [
        one["content"]
        for one in page.tagged("meta")
        if one.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; ")
    assert "script-src" not in policy
    assert not page.tagged("script")
    assert not re.search(r'(?:src|href|xlink:href)="(?!#|data:)', html)


def test_names_and_errors_are_escaped(hostile_html):
    page = Read(hostile_html)
    assert all(one["src"].startswith("data:image/svg+xml") for one in page.tagged("img"))
    assert not page.tagged("b")
    assert not page.tagged("script")
    assert not [name for _, attributes in page.tags for name in attributes if name[:2] == "on"]
    for section in ("state", "scores-by-unit", "failed-cells", "versions", "warnings", "notes"):
        assert HOSTILE in page.sections[section]


# ------------------------------------------------------------------------------------ odd input


def test_the_same_findings_give_the_same_page():
    made = make_findings(n_units=2, n_splits=2, metrics=("f1",), settings=(1, 2))
    assert study_page(made) == study_page(made)


def test_a_study_with_nothing_computed_has_a_page():
    made = make_findings(n_units=2, missing=40)
    bare = {name: getattr(made, name).iloc[:0] for name in ("scores", "curves", "cells")}
    page = Read(study_page(replace(made, **bare)))
    assert "0of 40 cells finished" in page.sections["state"]
    assert not page.tagged("img")


def test_one_unit_one_method_one_split_have_a_page():
    made = make_findings(n_units=1, methods=["a"], ours=["a"], n_splits=1, metrics=("brier",))
    page = Read(study_page(made))
    (figure,) = page.tagged("img")
    assert "Bars of Brier score (lower is better)" in figure["alt"]


def test_a_metric_that_is_never_defined_has_a_table_but_no_figure():
    made = make_findings(n_units=2, metrics=("f1", "auc"))
    made.scores.loc[made.scores["metric"] == "auc", "value"] = np.nan
    page = Read(study_page(made))
    assert "AUC" not in page.tagged("img")[0]["alt"]
    assert "n/a" in page.sections["scores-by-metric"]


def test_the_page_is_written_whole_into_a_new_folder(tmp_path):
    made = make_findings(n_units=1, metrics=("f1",))
    path = write_page(made, str(tmp_path / "new" / "study.html"))
    assert path == tmp_path / "new" / "study.html"
    assert path.read_text(encoding="utf-8") == study_page(made)
    assert [one.name for one in path.parent.iterdir()] == ["study.html"]


# ---------------------------------------------------------------------------------- the browser


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def visits(browser, html, hostile_html, tmp_path_factory):
    """The pages in both colour schemes, each with all that went on in it."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(viewport=TALL, color_scheme=scheme)
        for name, content in (("study", html), ("hostile", hostile_html)):
            path = folder / f"{name}.html"
            path.write_text(content, encoding="utf-8")
            tab, events = context.new_page(), []
            tab.on("console", lambda message, events=events: events.append(message.text))
            tab.on("pageerror", lambda error, events=events: events.append(str(error)))
            tab.on("request", lambda request, events=events: events.append(request.url))
            tab.goto(path.as_uri())
            found[name, scheme] = tab, events
    return found


@pytest.mark.long
def test_a_page_opens_without_errors_and_without_requests(visits):
    for tab, events in visits.values():
        assert events == [tab.url]
        assert tab.evaluate("typeof window.flag") == "undefined"


@pytest.mark.long
def test_every_figure_is_there_and_visible(visits):
    tab, _ = visits["study", "light"]
    boxes = tab.evaluate(
        """() => [...document.querySelectorAll('figure img')].map(one => {
            const box = one.getBoundingClientRect();
            return [one.checkVisibility(), one.naturalWidth > 250, box.width > 250];
        })"""
    )
    assert boxes == [[True, True, True]] * 4


@pytest.mark.long
@pytest.mark.parametrize("width", [360, 1200])
def test_no_page_is_wider_than_the_screen(visits, width):
    for tab, _ in visits.values():
        tab.set_viewport_size({"width": width, "height": 800})
        root = "document.documentElement"
        assert tab.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0
