"""The report of a study: what a reader of each format gets back, and that the page runs nothing."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_findings import HOSTILE, NASTY, VERSIONS, made, made_up, unit
from markdown_it import MarkdownIt
from reading import Page

from setconv.experiment.figures import study_figures
from setconv.experiment.page import latex_escape, latex_text, markdown_text, page_text, write_report
from setconv.experiment.study import METRICS as METRICS_OF_CELLS
from setconv.experiment.tables import plain, sections


@pytest.fixture(scope="module")
def nasty():
    found = made_up(
        units=[unit("S"), unit("D: a_b|c", "D"), unit("D: <i>", "D")],
        methods=["ours", NASTY, "broken"],
        metrics=("f1", "brier"),
        failed=[("D", "broken")],
        notes=("A *note*.",),
        command="run ```\n# not a heading",
    )
    error = "Traceback\nValueError: <script>alert(1)</script> \x1b[31m 100% | c_d"
    found.cells.loc[found.cells.status == "error", "error"] = error
    return found


def sheets_of(findings):
    return [sheet for section in sections(findings) for sheet in section.sheets]


def best_of(findings):
    """What a table shows of the first method on the first unit, which is the best."""
    values = findings.by_split(findings.units[0].name, "f1")[findings.methods[0]]
    return f"{values.mean():.3f} ± {values.std():.3f}".replace("0.", ".")


# --------------------------------------------------------------------------------------- Markdown


def read_markdown(text):
    """Return the tables, as texts of cells, and all tokens."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    tables = []
    for place, token in enumerate(tokens):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type in ("td_open", "th_open"):
            inline = tokens[place + 1].children
            tables[-1][-1].append("".join(one.content for one in inline))
    return tables, tokens


def test_markdown_reads_back_to_the_sheets(nasty):
    found, tokens = read_markdown(markdown_text(nasty))
    expected = [
        [[*map(plain, sheet.head)], *([plain(str(one)) for one in row] for row in sheet.rows)]
        for sheet in sheets_of(nasty)
    ]
    assert found == expected
    kinds = {child.type for token in tokens for child in token.children or []}
    assert kinds <= {"text", "text_special", "strong_open", "strong_close"}
    assert not any(token.type == "html_block" for token in tokens)
    (code,) = [token.content for token in tokens if token.type == "code_block"]
    assert code == "run ``` # not a heading\n"
    assert r"A \*note\*." in markdown_text(nasty)


@given(st.text(min_size=1, max_size=30))
def test_any_name_survives_markdown(name):
    findings = made({("A", name, "f1"): [0.5]}, methods=[name, f"{name}!"])
    (_, row, _), *_ = read_markdown(markdown_text(findings))[0]
    assert row[0] == plain(name)


# ------------------------------------------------------------------------------------------ LaTeX


def test_latex_has_every_sheet_and_every_row(nasty):
    text, sheets = latex_text(nasty), sheets_of(nasty)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == len(sheets)
    assert text.count("\\\\\n") == sum(1 + len(sheet.rows) for sheet in sheets)
    assert f"textbf{{{latex_escape(best_of(nasty))}}}" in text
    # Our own signs are commands; what is left beyond ASCII comes from the names.
    assert set(re.sub(r"[\x00-\x7f]", "", text)) == {"é"}


@given(st.text())
@example(r"\input{x}")
def test_nothing_in_any_name_is_special(name):
    commands = r"\\[&%$#_{}]|\\text\w+\{\}|\$-\$|\{[\[\]*]\}"
    assert not re.search(r"[\\&%$#_{}^~\n]", re.sub(commands, "", latex_escape(name)))


# -------------------------------------------------------------------------------------- the files


def test_files_are_the_same_each_time_and_csv_has_every_figure_with_all_digits(nasty, tmp_path):
    paths = write_report(nasty, tmp_path / "new" / "folder")
    files = {path.name: path.read_bytes() for path in paths}
    assert {"index.html", "tables.md", "tables.tex", "scores.svg"} <= set(files)
    again = write_report(nasty, tmp_path / "new" / "folder")
    assert {path.name: path.read_bytes() for path in again} == files
    assert sorted(one for one in tmp_path.rglob("*") if one.is_file()) == sorted(paths)
    _, _, _, means, scores, *_ = paths
    table = pd.read_csv(means)
    summary = nasty.summary
    assert NASTY in set(table["method"])
    assert list(table) == list(summary)
    for name in ("mean", "sd", "p_value"):
        np.testing.assert_allclose(table[name], summary[name].astype(float), rtol=1e-14)
    values = pd.read_csv(scores)["value"]
    np.testing.assert_allclose(values, nasty.scores["value"], rtol=1e-14)


# -------------------------------------------------------------------------------------- the page


def tagged(page, tag):
    return [one.given for one in page.elements if one.tag == tag]


def page_of(findings):
    return page_text(findings, study_figures(findings))


@pytest.fixture(scope="module")
def findings():
    found = made_up(settings=(1000, 2000, 4000), failed=[("unit 2", "IHT")], missing=7)
    found.cells.loc[0, "versions"] = json.dumps({**VERSIONS, "numpy": "1.26.0"})
    found.cells.loc[:2, "notes"] = json.dumps({"warnings": ["fell back", "fell back"]})
    return found


@pytest.fixture(scope="module")
def html(findings):
    return page_of(findings)


@pytest.fixture(scope="module")
def hostile_html():
    """Every text that a user can give is an attack."""
    made = made_up(
        units=[unit(HOSTILE), unit(f"1 {HOSTILE}")],
        methods=[HOSTILE, "m" * 150, "日本"],
        metrics=("f1", "auc"),
        settings=(1, 50),
        failed=[(HOSTILE, "日本")],
        title=HOSTILE,
        about=HOSTILE,
        command=HOSTILE,
        notes=(HOSTILE + "\x00\ud800",),
    )
    made.cells["error"] = HOSTILE + "\x00"
    made.cells["versions"] = json.dumps({HOSTILE: HOSTILE})
    made.cells["notes"] = json.dumps({"warnings": [HOSTILE]})
    made.scores.loc[made.scores["curve"] != "", "curve"] = HOSTILE
    return page_of(made)


def test_the_page_says_all_that_was_found(findings, html):
    page = Page(html)
    assert {"figures", "curves", "average-ranks", "along-a-parameter", "cost"} <= set(page.ids)
    assert findings.study.title in page.text
    assert findings.study.about in page.text
    assert page.section_rows("data")[2][2:] == ["rare", "unit 1", "2,000", "6.25"]
    assert page.section_rows("warnings")[1] == ["unit 0", "SetConv", "3", "fell back"]
    for section, told in (
        ("state", findings.command),
        ("state", "44of 55 cells finished"),
        ("state", "7not computed yet"),
        ("scores-by-unit", best_of(findings)),
        ("scores-by-metric", best_of(findings)),
        ("failed-cells", "ValueError: no rows <b>"),
        ("versions", "1.26.0 (1 cell), 2.1.0 (47 cells)"),
    ):
        assert told in page.section(section)


def test_every_figure_has_words_for_those_who_cannot_see_it(html):
    page = Page(html)
    figures = tagged(page, "img")
    assert len(tagged(page, "figcaption")) == len(figures) == 3
    assert all(len(one["alt"]) > 100 for one in figures)
    assert all(one.get("scope") in ("col", "row") for one in tagged(page, "th"))
    assert len(page.ids) == sum("id" in one.given for one in page.elements)
    assert set(re.findall(r'href="#([^"]+)', html)) <= set(page.ids)


def test_the_page_runs_nothing_and_fetches_nothing(html):
    (policy,) = [one["content"] for one in tagged(Page(html), "meta") if "http-equiv" in one]
    assert policy.startswith("default-src 'none'; ")
    assert "script-src" not in policy
    assert not re.search(r'(?:src|href|xlink:href)="(?!#|data:)', html)


def test_names_and_errors_are_escaped(hostile_html):
    page = Page(hostile_html)
    assert all(one["src"].startswith("data:image/svg+xml") for one in tagged(page, "img"))
    assert not [one.tag for one in page.elements if one.tag in ("b", "script")]
    assert not [name for one in page.elements for name in one.given if name.startswith("on")]
    for section in ("state", "scores-by-unit", "failed-cells", "versions", "warnings", "notes"):
        assert HOSTILE in page.ids[section]


def test_a_study_with_nothing_computed_has_a_page():
    page = Page(page_of(made_up(n_splits=0, missing=40)))
    assert "0of 40 cells finished" in page.section("state")
    assert not tagged(page, "img")


# ---------------------------------------------------------------------------------- the browser

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="module")
def visits(html, hostile_html, tmp_path_factory):
    """The pages, each with all that went on in it."""
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    folder = tmp_path_factory.mktemp("pages")
    found = []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for name, content in (("study", html), ("hostile", hostile_html)):
            path = folder / f"{name}.html"
            path.write_text(content, encoding="utf-8")
            tab, events = browser.new_page(), []
            tab.on("console", lambda message, events=events: events.append(message.text))
            tab.on("pageerror", lambda error, events=events: events.append(str(error)))
            tab.on("request", lambda request, events=events: events.append(request.url))
            tab.goto(path.as_uri())
            found.append((tab, events))
        yield found
        browser.close()


def wide():
    """Return findings of ten methods with long names on many data sets, with every mark."""
    long = "with_a_name_that_is_rather_long"
    names = [f"{long}_{i}" if i % 2 else f"Number {i} with a name of many words" for i in range(8)]
    methods = ("ours", *(f"{i} {long if i % 2 else 'in other words'}" for i in range(9)))
    found = made_up(
        units=[unit(f"{name}: {kind}", name) for name in names for kind in ("a", "b")],
        methods=methods,
        metrics=METRICS_OF_CELLS,
        settings=tuple(range(100, 1300, 100)),
        failed=[(names[1], methods[3])],
    )
    found.cells.loc[found.cells.status == "error", "error"] = f"ValueError: {long * 5}"
    found.cells.loc[:50, "notes"] = json.dumps({"warnings": [f"UserWarning: {'no news ' * 30}"]})
    found.cells.loc[:100, "versions"] = json.dumps({"setconv": "0.0.9"})
    last = found.scores.split == 3
    found.scores.loc[last & (found.scores.method == methods[-1]), "value"] = np.nan
    return found


@pytest.mark.long
def test_all_columns_of_all_tables_show_at_1200_pixels(visits, tmp_path):
    (tmp_path / "wide.html").write_text(page_of(wide()), encoding="utf-8")
    (first, _), *_ = visits
    size = {"width": 1200, "height": 900}
    for scheme in ("light", "dark"):
        tab = first.context.browser.new_page(viewport=size, color_scheme=scheme)
        tab.goto((tmp_path / "wide.html").as_uri())
        sections = {"data", "scores-by-unit", "scores-by-metric", "average-ranks", "failed-cells"}
        sections |= {"along-a-parameter", "cost", "warnings", "versions"}
        found = tab.locator("section:has(table)").evaluate_all("all => all.map(one => one.id)")
        assert set(found) == sections
        assert tab.evaluate(CUT) == []
        assert tab.evaluate(OUT) == []
        heads = tab.locator("#average-ranks thead bdi", has_text="difference")
        assert max(one.bounding_box()["height"] for one in heads.all()) < 30  # on one line


# Tables with a scroll bar, and cells with more than fits in.
CUT = """[...document.querySelectorAll('.scroll:has(table)')]
    .filter(one => one.scrollWidth > one.clientWidth).map(one => one.ariaLabel)"""
OUT = """[...document.querySelectorAll('th, td')]
    .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText)"""


@pytest.mark.long
def test_a_page_is_silent_and_no_wider_than_the_screen(visits):
    for tab, events in visits:
        assert events == [tab.url]
        assert tab.evaluate("typeof window.flag") == "undefined"
        assert tab.evaluate("[...document.images].every(one => one.naturalWidth > 250)")
        for width in (360, 1200):
            tab.set_viewport_size({"width": width, "height": 800})
            root = "document.documentElement"
            assert tab.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0
