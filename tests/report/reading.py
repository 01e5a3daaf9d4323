"""Reads a page as a parser does, for tests that compare what it says with what is right."""

import json
import re
from html.parser import HTMLParser

HOSTILE = (
    "</script><img src=x onerror=\"window.flag=1\"><b onclick='window.flag=1'>&amp;\u2028 ${7*7}"
)


class Page(HTMLParser):
    """Texts by id and by class, table rows by section, tags and attributes."""

    VOID = ("meta", "link", "br", "img", "input")

    def __init__(self, html):
        super().__init__()
        self.tags, self.ids, self.rows, self.classes = [], {}, [], {}
        self.text = ""
        self._open, self._section, self._row, self._quiet = [], None, None, 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag in ("script", "style"):
            self._quiet += 1
        if tag == "section":
            self._section = attributes["id"]
        if tag == "tr":
            self._row = []
        if tag in ("td", "th") and self._row is not None:
            self._row.append("")
        if tag not in self.VOID:
            texts = [[] for _ in (attributes.get("class") or "").split()]
            for name, text in zip((attributes.get("class") or "").split(), texts, strict=True):
                self.classes.setdefault(name, []).append(text)
            self._open.append((tag, attributes.get("id"), texts))

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._quiet -= 1
        if tag == "tr":
            self.rows.append((self._section, [" ".join(cell.split()) for cell in self._row]))
            self._row = None
        while self._open:
            if self._open.pop()[0] == tag:
                break

    def handle_data(self, data):
        for _, name, texts in self._open:
            if name:
                self.ids[name] = self.ids.get(name, "") + data
            for text in texts:
                text.append(data)
        if self._quiet:
            return
        self.text += data
        if self._row:
            self._row[-1] += f" {data}"

    def of_class(self, name):
        """The texts of all elements of a class."""
        return [" ".join("".join(parts).split()) for parts in self.classes.get(name, [])]

    def section(self, name):
        """The text of a section, white space aside."""
        return " ".join(self.ids[name].split())

    def section_rows(self, section):
        return [row for where, row in self.rows if where == section]

    def explorer(self):
        return json.loads(self.ids["explorer-data"])


def number(text):
    return float(
        re.search(r"[-\u2212]?\d[\d,]*(\.\d+)?", text)[0].replace(",", "").replace("\u2212", "-")
    )
