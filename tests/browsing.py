"""Pages in a real browser: what an open page logged, asked for and popped up."""

import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
WIDE = {"width": 1200, "height": 900}

needs_chromium = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@contextmanager
def chromium():
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


class Visit:
    """An open page and all that went on in it."""

    def __init__(self, tab, address):
        self.tab, self.address = tab, address
        self.console, self.requests, self.dialogs = [], [], []
        tab.on("console", lambda message: self.console.append(message.text))
        tab.on("pageerror", lambda error: self.console.append(str(error)))
        tab.on("request", lambda request: self.requests.append(request.url))
        tab.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        tab.goto(address)

    def overflow(self):
        return self.tab.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )


@contextmanager
def visits(browser, kind=Visit):
    """Give a function that opens an address in a tab of its own; all are closed in the end."""
    contexts = []

    def visit(address, **options):
        contexts.append(browser.new_context(**{"viewport": WIDE, **options}))
        contexts[-1].set_default_timeout(10_000)
        return kind(contexts[-1].new_page(), address)

    yield visit
    for context in contexts:
        context.close()
