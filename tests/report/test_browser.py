"""The page in a real browser: nothing is fetched, the slider counts rightly, attacks stay text."""

import numpy as np
import pytest
from browsing import Visit, chromium, needs_chromium, visits
from judging import cells, shown
from reading import Page

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


class Read(Visit):
    """An open report."""

    def values(self):
        names = ("tp", "fn", "fp", "tn", "spec", "sens", "precision", "f1", "g_mean", "alarms")
        return {name: self.tab.inner_text(f"#x-{name}") for name in names}

    def move(self, position):
        self.tab.locator("#explorer-slider").evaluate(
            "(slider, to) => { slider.value = to; slider.dispatchEvent(new Event('input')); }",
            position,
        )


@pytest.fixture
def visit(browser, tmp_path):
    with visits(browser, Read) as visit:
        yield lambda page, **given: visit(page.save(tmp_path / "report.html").as_uri(), **given)


@pytest.mark.parametrize("width", [360, 768, 1200])
def test_a_page_fits_the_screen_and_loads_nothing(visit, cases, text_page, hostile_page, width):
    for page in (text_page, cases["three"].report, hostile_page):
        opened = visit(page, viewport={"width": width, "height": 800})
        assert opened.overflow() == 0
        assert opened.console == []
        assert opened.requests == [opened.address]


@pytest.mark.parametrize(
    "name", ["two", "three", "weights", "prior", "three, prior", "no positives"]
)
def test_the_slider_moves_the_numbers_to_what_the_margins_say(visit, cases, name):
    case = cases[name]
    opened = visit(case.report)
    for place, explorer in enumerate(case.page.explorer()):
        c = next(c for c in case.classes if str(c) == explorer["name"])
        if place:
            opened.tab.select_option("#explorer-class", label=str(c))
        own, margin = case.labels == c, case.margin(c)
        assert opened.tab.is_visible("#x-own")
        assert opened.values() == cells(case.y, case.w, c, own)
        for position in (0, 333, 501, 1000, 1001):
            opened.move(position)
            alarm = margin >= margin.min() + np.ptp(margin) * position / 1000
            alarm = {1000: margin == margin.max(), 1001: margin > np.inf}.get(position, alarm)
            assert opened.values() == cells(case.y, case.w, c, alarm)
            lowest = margin[alarm].min(initial=np.inf)
            cut = (
                f"by {'+' if lowest > 0 else ''}{shown(lowest)}"
                if alarm.any()
                else "above all rows"
            )
            cut = "by 0.000" if np.array_equal(alarm, own) else cut
            assert opened.tab.inner_text("#x-cut") == cut
            assert opened.tab.is_visible("#x-own") == np.array_equal(alarm, own)
        opened.tab.click("#explorer-reset")
        assert opened.values() == cells(case.y, case.w, c, own)


def test_the_slider_works_with_the_keyboard(visit, text_page):
    opened = visit(text_page)
    opened.tab.focus("#explorer-slider")
    opened.tab.keyboard.press("Home")
    assert opened.values()["alarms"] == "1000.0"
    assert "Of 100 rows that are “fire”, 100 are found" in opened.tab.inner_text("#x-words")
    spoken = opened.tab.get_attribute("#explorer-slider", "aria-valuetext")
    assert spoken.startswith("threshold shifted by \u2212")


def test_hostile_texts_run_nothing(visit, hostile_page):
    opened = visit(hostile_page)
    opened.move(300)
    opened.tab.click("#explorer-reset")
    opened.tab.wait_for_timeout(100)
    assert opened.tab.evaluate("typeof window.flag") == "undefined"
    assert opened.dialogs == []
    assert opened.console == []
    assert opened.requests == [opened.address]
    assert opened.tab.locator("img").count() == 0
    assert "</script><img" in opened.tab.inner_text("h1")
    assert "</script><img" in opened.tab.inner_text("#x-words")


def test_even_an_injected_script_may_not_run(visit, text_page):
    opened = visit(text_page)
    opened.tab.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.flag = 1";
            document.body.append(script);
        }"""
    )
    assert opened.tab.evaluate("typeof window.flag") == "undefined"


def test_on_paper_controls_are_gone_and_numbers_stay(visit, text_page):
    opened = visit(text_page, viewport={"width": 720, "height": 1000})
    opened.tab.emulate_media(media="print", color_scheme="dark")
    assert not opened.tab.is_visible("#explorer-slider")
    assert not opened.tab.is_visible("nav")
    assert opened.tab.is_visible("#x-sens")
    ink = opened.tab.evaluate("getComputedStyle(document.body).color")
    assert max(map(int, ink[4:-1].split(","))) < 80
    assert opened.overflow() == 0
    assert opened.tab.pdf()[:5] == b"%PDF-"


def test_without_a_program_the_page_still_shows_the_models_own_decision(visit, text_page):
    opened = visit(text_page, java_script_enabled=False)
    shown = Page(text_page.html).ids
    assert opened.tab.inner_text("#x-sens") == shown["x-sens"]
    assert not opened.tab.is_visible("#explorer-slider")


def test_figures_follow_the_colour_scheme(visit, text_page):
    inks = set()
    for scheme in ("light", "dark"):
        opened = visit(text_page, color_scheme=scheme)
        inks.add(
            opened.tab.locator("svg.plot text").first.evaluate("e => getComputedStyle(e).fill")
        )
    assert len(inks) == 2
