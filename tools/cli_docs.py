"""Write docs/cli.md from the commands themselves.

python tools/cli_docs.py            # write it
python tools/cli_docs.py --check    # say whether it is current
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from setconv.cli.app import Exit, app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
_MARKUP = re.compile(r"\[/?[a-z]*\]")
_HEAD = """# Command line

`pip install 'setconv[cli,text,offline,report]'` brings everything that the commands need; `setconv
--install-completion` teaches your shell to complete them. Results go to standard output, all else
to standard error: where that is no terminal, how far a command is comes as plain lines, at most one
in ten seconds. Files are CSV, TSV, JSONL or Parquet, also gzipped, and `-` is standard input or
output. What a model folder holds is said by the README.md in it. Send the output of `setconv
--version -v` with a question.

This page is made from the commands by `python tools/cli_docs.py`.
"""
_MEANINGS = {
    Exit.OK: "done",
    Exit.FAILED: "an error that no other code names",
    Exit.USAGE: "a command, option or parameter that cannot be",
    Exit.DATA: "rows, columns, texts, labels or the content of a file that cannot be used",
    Exit.FILE: "a file, model or checkpoint that is missing, or cannot be read or written",
    Exit.MISSING: "an optional package that is not installed",
    Exit.INTERRUPTED: "interrupted by Ctrl-C or SIGTERM: nothing is left half-written",
}


def render() -> str:
    """Return the page."""
    parts = [_HEAD]
    for name, command in _commands(get_command(app), "setconv"):
        parts.append("\n".join(_section(name, command)))
    codes = "\n".join(f"| {int(code)} | {meaning} |" for code, meaning in _MEANINGS.items())
    parts.append(f"## Exit codes\n\n| code | meaning |\n| --- | --- |\n{codes}\n")
    return "\n".join(parts)


def _commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", command


def _section(name: str, command: Any) -> Iterator[str]:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    usage = [_called(p) if p.required else f"[{_called(p)}]" for p in arguments]
    yield f"## `{name}`\n"
    yield f"{_plain(command.help)}\n"
    yield f"```bash\n{' '.join([name, *usage])} [OPTIONS]\n```\n"
    for example in re.findall(r"\[bold\](.*?)\[/\]", command.epilog or ""):
        yield f"```bash\n# for example\n{example}\n```\n"
    yield "| argument or option | default | meaning |\n| --- | --- | --- |"
    for parameter in arguments:
        yield _row(_called(parameter), parameter)
    for parameter in options:
        flags = [*parameter.opts, *parameter.secondary_opts]
        yield _row(", ".join(flags), parameter)
    yield ""


def _called(argument: Any) -> str:
    return str(argument.metavar or argument.name).upper()


def _row(name: str, parameter: Any) -> str:
    default = parameter.default
    unset = any(default is nothing for nothing in (None, False, ...)) or callable(default)
    shown = "" if unset else f"`{default}`"
    needed = " Required." if parameter.required else ""
    return f"| `{name}` | {shown} | {_plain(parameter.help)}{needed} |"


def _plain(text: str | None) -> str:
    paragraphs = [" ".join(part.split()) for part in (text or "").split("\n\n")]
    return "\n\n".join(_MARKUP.sub("", part) for part in paragraphs)


def main() -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    page = render()
    if not parser.parse_args().check:
        PAGE.write_text(page, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        sys.exit("docs/cli.md is not current: run python tools/cli_docs.py")


if __name__ == "__main__":
    main()
