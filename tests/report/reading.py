"""Reads a page as a parser does, for tests that compare what it says with what is right."""

import json
import re
from html.parser import HTMLParser
from typing import NamedTuple

HOSTILE = (
    "</script><img src=x onerror=\"window.flag=1\"><b onclick='window.flag=1'>&amp;\u2028 ${7*7}"
)


class Element(NamedTuple):
    """A tag with its attributes, and all text inside it, piece by piece."""

    tag: str
    given: dict
    texts: list

    def text(self, between=""):
        return " ".join(between.join(self.texts).split())


class Page(HTMLParser):
    """The elements in their order, those with an id by it, and the text that can be read."""

    VOID = ("meta", "link", "br", "img", "input")

    def __init__(self, html):
        super().__init__()
        self.elements, self.text, self._open = [], "", []
        self.feed(html)
        self.close()
        self.ids = {
            one.given["id"]: "".join(one.texts) for one in self.elements if "id" in one.given
        }

    def handle_starttag(self, tag, attributes):
        self.elements.append(Element(tag, dict(attributes), []))
        if tag not in self.VOID:
            self._open.append(self.elements[-1])

    def handle_endtag(self, tag):
        while self._open and self._open.pop().tag != tag:
            pass

    def handle_data(self, data):
        for one in self._open:
            one.texts.append(data)
        if not any(one.tag in ("script", "style") for one in self._open):
            self.text += data

    def of_class(self, name):
        """The texts of all elements of a class."""
        return [
            one.text() for one in self.elements if name in (one.given.get("class") or "").split()
        ]

    def section(self, name):
        """The text of a section, white space aside."""
        return " ".join(self.ids[name].split())

    def section_rows(self, name):
        """The cells of all rows of the tables in a section."""
        rows, where = [], None
        for one in self.elements:
            if one.tag == "section":
                where = one.given["id"]
            elif where == name and one.tag == "tr":
                rows.append([])
            elif where == name and one.tag in ("td", "th"):
                rows[-1].append(one.text(" "))
        return rows

    def explorer(self):
        return json.loads(self.ids["explorer-data"])


def number(text):
    return float(
        re.search(r"[-\u2212]?\d[\d,]*(\.\d+)?", text)[0].replace(",", "").replace("\u2212", "-")
    )
