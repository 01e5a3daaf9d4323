"""``setconv cache``: the embeddings on disk."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from setconv.cli.options import Json, out, say, show_json, table

app = typer.Typer(help="Show or clear the embeddings that are kept on disk.", no_args_is_help=True)


@app.command(epilog="Example: [bold]setconv cache info[/]")
def info(as_json: Json = False) -> None:
    """Show where the cache is and what is in it."""
    from setconv.text.cache import EmbeddingCache

    found = EmbeddingCache().info()
    if as_json:
        show_json(asdict(found))
        return
    out.print(
        f"{found.folder}: {found.entries:,} embeddings, {found.bytes / 1e6:.1f} of at most "
        f"{found.max_bytes / 1e6:,.0f} MB",
        markup=False,
    )
    rows = []
    for one in found.spaces:
        size, day = f"{one.bytes / 1e6:.1f}", f"{one.last_used:%Y-%m-%d}"
        rows.append([one.model, one.pooling, one.max_length, f"{one.entries:,}", size, day])
    if rows:
        head = ["model", "pooling", "tokens", "entries", "MB", "last used"]
        out.print(table("By encoder", head, rows))


@app.command(epilog="Example: [bold]setconv cache clear --yes[/]")
def clear(
    model: Annotated[
        str | None, typer.Option("--model", help="Only the embeddings of this encoder.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove embeddings from the cache."""
    from setconv.text.cache import EmbeddingCache

    cache = EmbeddingCache()
    if not yes:
        typer.confirm(f"Remove embeddings from {cache.path.parent}?", abort=True)
    say(f"{cache.clear(model):,} embeddings removed")
