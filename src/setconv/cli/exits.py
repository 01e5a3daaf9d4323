"""Exit codes that scripts can rely on, and how errors become them."""

from __future__ import annotations

from enum import IntEnum

from setconv import errors


class Exit(IntEnum):
    """What the command line returns."""

    OK = 0
    FAILED = 1  # an error that none of the others name
    USAGE = 2  # a command, option or parameter that cannot be
    DATA = 3  # rows, columns, texts or labels that cannot be used
    FILE = 4  # a model folder, checkpoint, input or output that cannot be read or written
    MISSING = 5  # an optional package is not installed
    INTERRUPTED = 130


_BY_ERROR: tuple[tuple[type[BaseException], Exit], ...] = (
    (KeyboardInterrupt, Exit.INTERRUPTED),
    (errors.MissingDependencyError, Exit.MISSING),
    (errors.ModelFileError, Exit.FILE),
    (errors.CheckpointError, Exit.FILE),
    (errors.ParameterError, Exit.USAGE),
    (errors.DataError, Exit.DATA),
    (errors.SetConvError, Exit.FAILED),
    (MemoryError, Exit.FAILED),
    (OSError, Exit.FILE),
)


def exit_code(error: BaseException) -> Exit | None:
    """Return the exit code of an error that a message explains; None for a fault of ours."""
    for kind, code in _BY_ERROR:
        if isinstance(error, kind):
            return code
    return None
