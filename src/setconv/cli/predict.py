"""``setconv predict``: a label and probabilities for every row of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from setconv.cli import options
from setconv.cli.options import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EPILOG = (
    "Examples: [bold]setconv predict model/ new.csv -o out.parquet[/]   "
    "[bold]zcat new.csv.gz | setconv predict model/ - -o - > out.csv[/]"
)


def command(
    model: options.Model,
    data: options.Data,
    output: Annotated[
        str, Option("--output", "-o", help="File to write; - is standard output.")
    ] = "-",
    text: options.Text = None,
    objective: options.Objective = None,
    prior: options.Prior = None,
    keep: Annotated[
        str | None,
        Option(
            "--keep",
            help='Input columns to copy, "a,b", "all" or "none"; all but the features if not '
            "given.",
        ),
    ] = None,
    empty: options.EmptyRows = "error",
    device: options.Device = "auto",
    file_format: options.Format = None,
    output_format: options.OutputFormat = None,
    encoding: options.Encoding = None,
    escape_formulas: options.EscapeFormulas = False,
) -> None:
    """Predict every row of a file, in bounded memory.

    The output has the kept columns, then predicted_label, and probability_<class> for each class.
    Rows without a text have no prediction with --empty skip. Texts, labels and column names of a
    CSV file that start with =, +, -, @, a tab or a carriage return are formulas to a spreadsheet:
    they are written as they are, for programs to read, unless --escape-formulas is given.
    """
    from setconv.cli.data import Reading, column_plan, inside, load_model, stream
    from setconv.io.writer import check_kept, prediction_columns

    fitted = load_model(model, device, objective, prior)
    with Reading(text, None, file_format, encoding).open(data) as reader:
        plan = column_plan(fitted, reader, text, keep)
        check_kept(plan.kept, fitted.classes_)

        def compute(batch: Any, numbers: NDArray[np.int64]) -> dict[str, Any]:
            rows, present = plan.rows(batch, numbers, skip_empty=empty == "skip")
            found = inside(fitted).predictions(rows) if present.any() else None
            return prediction_columns(fitted.classes_, found, present)

        given: Any = {"output_format": output_format, "escape_formulas": escape_formulas}
        count = stream(reader, output, compute, plan.kept, **given)
    say(f"{count:,} rows predicted")
