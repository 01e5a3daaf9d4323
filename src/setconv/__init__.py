"""Classification when the class that matters is rare, by set convolution.

`SetConvClassifier` is the scikit-learn estimator for rows of numbers, `SetConvTextClassifier` the
one for texts, `SetConvTableClassifier` the one for tables with categories and gaps. `load` opens a
saved one, `presets` has the paper's and the authors' settings, `metrics` the figures to judge by,
and `promises` says before a fit what so many rows can promise.
torch is imported at the first use of a name that needs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from setconv._version import __version__

if TYPE_CHECKING:
    from setconv import metrics, presets
    from setconv.classifier import SetConvClassifier
    from setconv.decisions import promises
    from setconv.pipelines import SetConvTableClassifier, SetConvTextClassifier, load

__all__ = [
    "SetConvClassifier",
    "SetConvTableClassifier",
    "SetConvTextClassifier",
    "__version__",
    "load",
    "metrics",
    "presets",
    "promises",
]

_MODULES = (
    "episodes",
    "errors",
    "experiment",
    "explain",
    "export",
    "io",
    "metrics",
    "model",
    "nn",
    "presets",
    "report",
    "text",
    "training",
)
_HOMES = {
    "SetConvClassifier": "setconv.classifier",
    "SetConvTableClassifier": "setconv.pipelines",
    "SetConvTextClassifier": "setconv.pipelines",
    "load": "setconv.pipelines",
    "promises": "setconv.decisions",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in _MODULES:
        return import_module(f"setconv.{name}")
    raise AttributeError(f"module 'setconv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
