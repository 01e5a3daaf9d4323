"""Tables as files and in the terminal: what a reader of each format gets back."""

import csv
import io
import math
import re
import sys

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from test_tables import cells, noisy, published, scores, study, unit

from setconv.errors import MissingDependencyError
from setconv.experiment import tables
from setconv.experiment.tables import (
    WORSE,
    Sheet,
    SheetRow,
    Shown,
    latex,
    latex_escape,
    measured_entries,
    plain,
    sections,
)

NASTY = r"a_b & 50% {x} \input{y} $z$ #1 ~^ <b>|</b> [q] *r* `s` &amp; é"


@pytest.fixture(scope="module")
def findings():
    units = [unit("S"), unit("D: a_b|c", "D"), unit("D: <i>", "D")]
    methods = ["ours", NASTY, "broken"]
    given = {
        (one.name, method, metric): noisy(0.9 - 0.1 * place, 10 * row + place, n=5)
        for row, one in enumerate(units)
        for place, method in enumerate(methods[:2])
        for metric in ("f1", "brier")
    }
    error = "Traceback\nValueError: <script>alert(1)</script> \x1b[31m 100% | c_d"
    rows = [("D", "broken", 0, "error", error, 1, 1), ("S", "ours", 0, "ok", "", 1, 1)]
    return study(
        given,
        units=units,
        methods=methods,
        metrics=["f1", "brier"],
        cells=cells(rows),
        published=published(
            [("S", "ours", "f1", 0.95, math.nan), ("IRT", "ours", "f1", 1.0, 0.01)]
        ),
        missing=2,
        notes=("A *note*.",),
    )


@pytest.fixture(scope="module")
def all_sections(findings):
    return sections(findings)


def sheet_of(*names):
    rows = tuple(SheetRow((Shown(name), Shown(".5", bold=True, after="▼"))) for name in names)
    return Sheet("A title", "A caption.", ("method", "F1"), "lr", rows, ("A note.",))


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


def test_markdown_reads_back_to_the_sheets(findings, all_sections):
    found, tokens = read_markdown(tables.markdown_text(findings, all_sections))
    sheets = [sheet for section in all_sections for sheet in section.sheets]
    expected = [
        [
            list(map(plain, sheet.head)),
            *([plain(str(one)) for one in row.cells] for row in sheet.rows),
        ]
        for sheet in sheets
    ]
    assert found == expected
    kinds = {child.type for token in tokens for child in token.children or []}
    assert kinds <= {"text", "text_special", "strong_open", "strong_close"}
    assert not any(token.type == "html_block" for token in tokens)


def test_markdown_has_the_command_the_notes_and_what_is_not_computed(findings, all_sections):
    text = tables.markdown_text(findings, all_sections)
    assert text.startswith(
        "# A small study\n\nWhat it is about.\n\n```bash\nsetconv experiment run"
    )
    assert "Not computed yet: 2 cells." in text
    assert r"A \*note\*." in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_the_best_is_bold_and_its_mark_is_not():
    assert "| x | **.5** ▼ |" in tables.markdown(sheet_of("x"))


@given(st.text(min_size=1, max_size=30))
def test_any_name_survives_markdown(name):
    ((_, row),), _ = read_markdown(tables.markdown(sheet_of(name)))
    assert row == [plain(name), ".5 ▼"]


def test_a_command_cannot_end_its_block():
    odd = study({}, command="run ```\n# not a heading")
    _, tokens = read_markdown(tables.markdown_text(odd, []))
    (fence,) = [token for token in tokens if token.type == "fence"]
    assert fence.content == "run ``` # not a heading\n"


# ------------------------------------------------------------------------------------------ LaTeX


def check_latex(text):
    """Check braces, environments, mathematics and columns; return the number of cells by row."""
    text = re.sub(r"(?<!\\)%.*", "", text)
    token = re.compile(r"\\(begin|end)\{(\w+\*?)\}(?:\[\w+\])?|\\\\|\\[a-zA-Z]+|\\.|[{}$&]")
    opened, depth, math_open, columns, cells_, rows = [], 0, False, 0, 1, []
    place = 0
    while match := token.search(text, place):
        place = match.end()
        found = match.group()
        if match.group(1) == "begin":
            opened.append((match.group(2), depth))
            if match.group(2) == "tabular":
                specification, place = braces(text, place)
                columns = len(re.findall(r"[lr]|p\{[^{}]*\}", specification))
        elif match.group(1) == "end":
            assert opened.pop() == (match.group(2), depth)
        elif found in "{}":
            depth += 1 if found == "{" else -1
            assert depth >= 0
        elif found == "$":
            math_open = not math_open
        elif found == "&":
            assert opened[-1][0] == "tabular"
            cells_ += 1
        elif found == r"\\":
            assert (cells_, math_open, depth) == (columns, False, opened[-1][1])
            # A bracket or a star here would be taken for an argument of the end of the row.
            assert not re.match(r"\s*[\[*]", text[place:])
            rows.append(cells_)
            cells_ = 1
    assert (opened, depth, math_open, cells_) == ([], 0, False, 1)
    assert not re.search(r"(?<!\\)[#_^~<>|\"]", text.replace(r"\\", ""))
    return rows


def braces(text, place):
    """Return what stands in the braces that open here, and the place after them."""
    assert text[place] == "{"
    depth, end = 1, place + 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[place + 1 : end - 1], end


def test_the_checker_finds_what_does_not_compile():
    good = latex(sheet_of("x", "y"))
    assert check_latex(good) == [2, 2, 2]
    for bad in ("{", "$", "&", r"\end{table}", r"\begin{center}", "_", r" & \\"):
        with pytest.raises((AssertionError, IndexError)):
            check_latex(good.replace("A note.", bad))
    with pytest.raises(AssertionError):
        check_latex(good.replace(r"\midrule", "[1] "))


def test_all_tables_of_a_study_compile(findings, all_sections):
    text = tables.latex_text(findings, all_sections)
    rows = check_latex(text)
    sheets = [sheet for section in all_sections for sheet in section.sheets]
    assert len(rows) == sum(1 + len(sheet.rows) for sheet in sheets)
    assert text.count(r"\begin{table}") == text.count(r"\bottomrule") == len(sheets)
    assert r"\usepackage{amssymb,booktabs}" in text
    # Our own signs are commands; what is left beyond ASCII comes from the names.
    assert set(re.sub(r"[\x00-\x7f]", "", text)) == {"é"}


def test_latex_has_bold_marks_rules_and_minus_signs():
    rows = (
        SheetRow((Shown("a"), Shown("-.5 ± .1", bold=True, after=WORSE))),
        SheetRow((Shown("b-c"), Shown("\N{EN DASH}")), rule=True),
    )
    text = latex(Sheet("T", "C", ("m", "v"), "lr", rows))
    assert r"a & \textbf{$-$.5 $\pm$ .1} $\blacktriangledown$ \\" in text
    assert "\\midrule\nb-c & -- \\\\" in text
    assert r"\begin{tabular}{lr}" in text


@given(st.text(max_size=30))
def test_any_name_compiles(name):
    assert check_latex(latex(sheet_of(name, f"[{name}", f"*{name}"))) == [2, 2, 2, 2]


def test_nothing_in_a_name_is_a_command():
    assert latex_escape(r"\input{x}") == r"\textbackslash{}input\{x\}"
    assert latex_escape("50%\nof_it") == r"50\% of\_it"


def test_a_title_cannot_leave_its_comment():
    text = tables.latex_text(study({}, title="one\n\\input{two}"), [])
    assert text.splitlines()[0] == r"% one \input{two}"


# -------------------------------------------------------------------------------------------- CSV


def test_csv_has_every_figure_once_with_all_digits(findings):
    rows = list(csv.DictReader(io.StringIO(tables.csv_text(findings))))
    names = ["unit", "method", "metric", "mean", "sd", "n_splits", "best", "p_value", "mark"]
    assert list(rows[0]) == names
    entries = measured_entries(findings)
    assert len(rows) == len(entries) + 2
    for row, (key, entry) in zip(rows, entries.items(), strict=False):
        assert (row["unit"], row["method"], row["metric"]) == tuple(key)
        assert int(row["n_splits"]) == entry.n_splits
        assert row["best"] == str(entry.best)
        assert row["mark"] == entry.mark
        for name, value in [
            ("mean", entry.mean),
            ("sd", entry.deviation),
            ("p_value", entry.p_value),
        ]:
            assert row[name] == ("" if math.isnan(value) else repr(value))
    assert rows[-2]["method"] == "ours (published)"
    assert [rows[-2][name] for name in names[3:]] == ["0.95", "", "", "False", "", ""]


def test_csv_is_read_by_pandas_with_names_as_they_are(findings):
    frame = pd.read_csv(io.StringIO(tables.csv_text(findings)))
    assert NASTY in set(frame["method"])
    ours = frame[(frame["unit"] == "S") & (frame["method"] == "ours") & (frame["metric"] == "f1")]
    here = findings.scores.query("unit == 'S' and method == 'ours' and metric == 'f1'")
    assert ours["mean"].item() == pytest.approx(here["value"].mean(), rel=1e-14)


# --------------------------------------------------------------------------------------- terminal


def shown(sheet, width=200):
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(tables.terminal(sheet))
    return console.file.getvalue()


def test_the_terminal_shows_title_cells_caption_and_notes(all_sections):
    pytest.importorskip("rich")
    for section in all_sections:
        for sheet in section.sheets:
            text = re.sub(r"\s+", " ", re.sub(r"\x1b\[[0-9;]*m", "", shown(sheet)))
            for part in (sheet.title, *sheet.head, sheet.caption, *sheet.notes):
                assert plain(part) in text
            for row in sheet.rows:
                assert plain(str(row.cells[-1])) in text


def test_names_are_no_markup_and_no_control_codes_in_the_terminal():
    pytest.importorskip("rich")
    text = shown(sheet_of("[bold]x[/bold]", "a\x1b[31mred", "two\nlines"))
    assert "[bold]x[/bold]" in text
    assert "\x1b[31m" not in text
    assert "two lines" in text


def test_without_rich_the_message_has_the_pip_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'setconv\[cli\]'"):
        tables.terminal(sheet_of("x"))


# -------------------------------------------------------------------------------------- the files


def test_three_files_are_written_whole_and_the_same_each_time(findings, tmp_path):
    folder = tmp_path / "new" / "folder"
    paths = tables.write_tables(findings, folder)
    assert [path.name for path in paths] == ["tables.md", "tables.tex", "tables.csv"]
    first = [path.read_bytes() for path in paths]
    assert first[2].decode() == tables.csv_text(findings)
    assert [path.read_bytes() for path in tables.write_tables(findings, str(folder))] == first
    assert sorted(folder.iterdir()) == sorted(paths)


def test_findings_that_cannot_be_shown_leave_earlier_files_alone(findings, tmp_path):
    paths = tables.write_tables(findings, tmp_path)
    before = [path.read_bytes() for path in paths]
    twice = scores({("A", "ours", "f1"): [0.5]})
    with pytest.raises(ValueError, match="twice"):
        tables.write_tables(study({}, scores=pd.concat([twice, twice])), tmp_path)
    assert [path.read_bytes() for path in paths] == before
