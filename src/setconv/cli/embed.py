"""``setconv embed``: texts to embeddings in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from setconv.cli import options
from setconv.cli.options import say
from setconv.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

EPILOG = "Example: [bold]setconv embed reviews.csv --text review -o embeddings.parquet[/]"


def command(
    data: options.Data,
    output: Annotated[
        str,
        Option("--output", "-o", help="File to write; - is standard output.", show_default=False),
    ],
    text: options.Text = None,
    encoder: Annotated[
        str, Option("--encoder", help="Name or folder of a Hugging Face model.")
    ] = "all-MiniLM-L6-v2",
    pooling: Annotated[
        Literal["mean", "cls", "max"], Option("--pooling", help="Of the tokens' states.")
    ] = "mean",
    normalize: Annotated[bool, Option("--normalize", help="Scale to unit length.")] = False,
    max_length: Annotated[int, Option("--max-length", min=3, help="Tokens of a text.")] = 256,
    empty: options.EmptyRows = "error",
    device: options.Device = "auto",
    file_format: options.Format = None,
    output_format: options.OutputFormat = None,
    encoding: options.Encoding = None,
    escape_formulas: options.EscapeFormulas = False,
) -> None:
    """Turn texts into embeddings: all other columns, then one column a dimension.

    Texts that the cache knows are not encoded again. Rows without a text have empty fields with
    --empty skip. Texts and column names of a CSV file that are formulas to a spreadsheet are
    written as they are, unless --escape-formulas is given.
    """
    import numpy as np
    import pyarrow as pa

    from setconv.cli.data import Reading, find_text, stream, texts_of
    from setconv.io.columns import has_text
    from setconv.text.encoder import TextEncoder

    if encoder == "tfidf":
        raise ParameterError(
            "--encoder tfidf counts the words of the texts that a model is fitted to, so it cannot "
            "embed alone: give the name or folder of a Hugging Face model."
        )

    settings: Any = {"pooling": pooling, "normalize": normalize, "max_length": max_length}
    model = TextEncoder(encoder, **settings, device=device, progress=True)
    with Reading(text, None, file_format, encoding).open(data) as reader:
        column = find_text(reader, text)

        def embed(table: Any, numbers: NDArray[Any]) -> dict[str, Any]:
            present = has_text(table[column])
            if empty == "skip":
                table, numbers = table.filter(present), numbers[present]
            texts = texts_of(table, column, numbers)
            rows = np.full((len(present), model.find_files().width), np.nan, dtype=np.float32)
            if texts:
                rows[present] = model.transform(texts)
            columns = (pa.array(values, from_pandas=True) for values in rows.T)
            return {f"embedding_{number}": column for number, column in enumerate(columns)}

        kept = [name for name in reader.columns if name != column]
        given: Any = {"output_format": output_format, "escape_formulas": escape_formulas}
        count = stream(reader, output, embed, kept, **given)
    say(f"{count} texts embedded")
