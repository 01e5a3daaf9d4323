"""The errors that setconv raises on purpose.

All are `SetConvError`, and each is also the builtin error that callers already catch. An estimator
that is not fitted raises scikit-learn's own ``NotFittedError``.
"""

from __future__ import annotations

__all__ = [
    "CheckpointError",
    "DataError",
    "DataTypeError",
    "DivergedError",
    "LabelError",
    "MissingDependencyError",
    "ModelFileError",
    "ParameterError",
    "SetConvError",
    "StudyError",
    "StudyFileError",
]


class SetConvError(Exception):
    """The root of every error that setconv raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong.
    parameter : str, optional
        The parameter whose value is wrong, by its name in Python.
    row : int, optional
        The first row that is wrong.
    column : str or int, optional
        The column that is wrong, by its name, or by its number where it has none.
    hint : str, optional
        What to do next; it follows the message.
    """

    def __init__(
        self,
        message: str = "",
        *,
        parameter: str | None = None,
        row: int | None = None,
        column: str | int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.parameter, self.row, self.column, self.hint = parameter, row, column, hint

    def __str__(self) -> str:
        message = str(self.args[0]) if self.args else ""
        return message if self.hint is None else f"{message} {self.hint}"


class ParameterError(SetConvError, ValueError):
    """A parameter has a value that cannot work."""


class DataError(SetConvError, ValueError):
    """The rows cannot be used: empty, not numeric, not finite, or of the wrong shape."""


class DataTypeError(DataError, TypeError):
    """The rows are of a type that is not supported."""


class LabelError(DataError):
    """The labels cannot be used: a single class, or a label that was not announced."""


class ModelFileError(SetConvError, ValueError):
    """A model folder is damaged, foreign, or from a newer version."""


class CheckpointError(SetConvError, ValueError):
    """A checkpoint is damaged or belongs to another fit."""


class DivergedError(SetConvError, ArithmeticError):
    """Training left the range of numbers."""


class MissingDependencyError(SetConvError, ImportError):
    """An optional dependency is not installed; the message has the exact pip line."""


class StudyError(SetConvError, ValueError):
    """A store belongs to another study, or the workers of a study cannot start."""


class StudyFileError(StudyError):
    """A file of a study is damaged or foreign, or cannot be read or written."""
