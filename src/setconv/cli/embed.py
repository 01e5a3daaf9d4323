"""``setconv embed``: texts to embeddings in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from setconv.cli import options
from setconv.cli.options import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EPILOG = "Example: [bold]setconv embed reviews.csv --text review -o embeddings.parquet[/]"


def command(
    data: options.Data,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="File to write; - is standard output.", show_default=False
        ),
    ],
    text: options.Text = None,
    encoder: Annotated[
        str, typer.Option("--encoder", help="Name or folder of a Hugging Face model.")
    ] = "all-MiniLM-L6-v2",
    pooling: Annotated[
        Literal["mean", "cls", "max"], typer.Option("--pooling", help="Of the tokens' states.")
    ] = "mean",
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale to unit length.")] = False,
    max_length: Annotated[int, typer.Option("--max-length", help="Tokens of a text.")] = 256,
    device: options.Device = "auto",
    file_format: options.Format = None,
    encoding: options.Encoding = None,
) -> None:
    """Turn texts into embeddings: all other columns, then one column a dimension.

    Texts that the cache knows are not encoded again.
    """
    from setconv.cli.data import Reading, find_text, stream, texts_of
    from setconv.text.encoder import TextEncoder

    model = TextEncoder(
        encoder,
        pooling=pooling,
        normalize=normalize,
        max_length=max_length,
        device=device,
    )
    with Reading(text, None, file_format, encoding).open(data) as reader:
        column = find_text(reader, text)

        def embed(table: Any, numbers: NDArray[np.int64]) -> dict[str, Any]:
            rows = model.transform(texts_of(table, column, numbers))
            names = (f"embedding_{number}" for number in range(rows.shape[1]))
            return dict(zip(names, rows.T, strict=True))

        kept = [name for name in reader.columns if name != column]
        count = stream(reader, output, embed, kept)
    say(f"{count} texts embedded")
