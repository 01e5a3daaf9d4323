"""Sphinx configuration; build with ``make docs``. Needs no network."""

from pathlib import Path

from sphinx.addnodes import pending_xref

import setconv

ROOT = Path(__file__).parent.parent

project = "setconv"
author = "the setconv developers"
copyright = f"2026, {author}"
version = release = setconv.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build", "figures"]

# Markdown
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Docstrings
napoleon_google_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
    # scikit-learn generates these, with links into its own documentation.
    "exclude-members": ", ".join(
        f"set_{method}_request"
        for method in (
            "decision_function",
            "fit",
            "partial_fit",
            "predict",
            "predict_log_proba",
            "predict_proba",
            "score",
            "transform",
        )
    ),
}
python_maximum_signature_line_length = 88

# Pages
html_theme = "furo"
html_title = f"setconv {release}"


def unlink_repository_files(app, doctree):
    """Show a link from README.md to a file that has no page here as plain text."""
    for node in list(doctree.findall(pending_xref)):
        if node.get("reftype") == "myst" and (ROOT / node["reftarget"]).is_file():
            node.replace_self(node.children)


def setup(app):
    app.connect("doctree-read", unlink_repository_files)
