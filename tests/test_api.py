"""What other people's code stands on: names, signatures, errors, and who imports whom."""

import ast
import importlib
import inspect
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import setconv
from setconv import errors, presets
from setconv.classifier import SetConvClassifier, check_parameters
from setconv.fitting import automatic_steps, settle
from setconv.preprocessing import FEW_COLUMNS, PreparedRows

SOURCE = Path(setconv.__file__).parent

NAMES = ["SetConvClassifier", "SetConvTableClassifier", "SetConvTextClassifier"]
NAMES += ["__version__", "load", "metrics", "presets", "promises"]
OTHERS = (
    "baselines",
    "datasets",
    "experiment",
    "explain",
    "io",
    "metrics",
    "nn",
    "report",
    "serve",
    "text",
)

METHODS = {
    "fit": ["X", "y", "sample_weight", "X_val", "y_val", "groups", "time", "resume_from"],
    "partial_fit": ["X", "y", "classes", "sample_weight"],
    "post_train": ["X", "y", "sample_weight"],
    "predict": ["X"],
    "predict_proba": ["X"],
    "predictions": ["X"],
    "predict_to": ["X", "path", "keep"],
    "predict_out_of_fold": [],
    "decision_function": ["X"],
    "transform": ["X"],
    "get_feature_names_out": ["input_features"],
    "set_objective": ["objective"],
    "set_prior": ["prior"],
    "save": ["folder"],
}

# Top to bottom: a room imports only from its own line and those below it.
LAYERS = [
    {"__main__", "cli"},
    {"experiment"},
    {"baselines", "datasets", "estimate", "report", "serve"},
    {"pipelines", "text"},
    {"classifier"},
    {"fitting", "model", "persistence", "survey", "validation"},
    {"linear", "preprocessing", "training"},
    {"data", "decisions", "episodes", "explain", "io", "metrics", "nn", "presets", "sampling"},
    {"_version", "errors", "messages"},
]

# Rooms that could be libraries of their own: all that they know of the rest.
ALONE = {
    "decisions": {"data", "errors", "messages", "metrics", "sampling"},
    "explain": {"errors", "messages"},
    "io": {"data", "errors", "messages"},
    "metrics": {"data", "errors", "messages", "sampling"},
    "nn": {"errors", "messages"},
    "experiment.statistics": {"errors", "messages"},
    "experiment.store": {"errors", "io.files", "messages"},
}

ERRORS = {
    "ParameterError": ValueError,
    "DataError": ValueError,
    "DataTypeError": TypeError,
    "LabelError": ValueError,
    "ModelFileError": ValueError,
    "CheckpointError": ValueError,
    "DivergedError": ArithmeticError,
    "MissingDependencyError": ImportError,
    "StudyError": ValueError,
    "StudyFileError": ValueError,
}


def module_name(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Of all modules but the package itself, which is lazy: it imports nothing before it is asked.
MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}
del MODULES["setconv"]


def room(module):
    """The part of the package that a module belongs to: setconv.training.loop -> training."""
    return module.split(".")[1]


@cache
def inner_imports(module):
    """Modules of setconv that a module imports, each with whether it does so at the top level."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    found = []
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else node.module for name in inside]
        ours = [name for name in dict.fromkeys(names) if name.split(".")[0] == "setconv"]
        found += [(name, node in tree.body) for name in ours]
    return found


# --------------------------------------------------------------------------------- public names


def test_the_package_lists_exactly_its_public_names():
    assert sorted(setconv.__all__) == dir(setconv) == NAMES


@pytest.mark.parametrize("module", OTHERS)
def test_every_public_name_of_a_module_exists(module):
    imported = importlib.import_module(f"setconv.{module}")
    assert all(getattr(imported, name) is not None for name in imported.__all__)


def test_the_constructor_takes_names_only():
    kinds = {one.kind for one in inspect.signature(SetConvClassifier).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}


def test_the_public_methods_and_their_arguments_are_frozen():
    own = {name: value for name, value in vars(SetConvClassifier).items() if name[0] != "_"}
    # scikit-learn adds methods for metadata routing, and wraps set_output.
    ours = {
        name: [*inspect.signature(value).parameters][1:]
        for name, value in own.items()
        if inspect.isfunction(value) and not name.endswith("_request") and name != "set_output"
    }
    assert ours == METHODS


def test_automatic_steps_never_fall_with_the_rows_and_have_an_end():
    steps = [automatic_steps(rows, True) for rows in (2, 100, 5000, 20_000, 10**5, 10**7, 10**8)]
    assert steps[0] >= 1
    assert steps == sorted(steps)
    assert steps[-1] == steps[-2]


@pytest.mark.parametrize("shape", [(10, 1), (3000, 20), (3000, 768), (10**6, 50)], ids=str)
def test_what_is_automatic_is_settled_by_the_shape_and_what_is_given_stays(shape):
    rows = shape[0], PreparedRows(np.broadcast_to(0.0, shape))
    found = vars(settle(check_parameters(SetConvClassifier()), *rows))
    still_open = {name for name, value in found.items() if value == "auto"}
    assert still_open == {"scaling", "device", "progress"}
    assert found["max_steps"] == automatic_steps(shape[0], shape[1] <= FEW_COLUMNS)
    given = {"n_members": 3, "n_episodes": 5, "dropout": 0.1, "lr": 0.02, "encoder": (4,)}
    kept = vars(settle(check_parameters(SetConvClassifier(**given)), *rows))
    assert {name: kept[name] for name in given} == given


@pytest.mark.parametrize("preset", ["PAPER", "REFERENCE"])
def test_a_preset_is_made_of_constructor_parameters(preset):
    values = getattr(presets, preset)
    assert SetConvClassifier(**values).get_params().items() >= values.items()


# --------------------------------------------------------------------------------------- errors


def test_every_error_is_a_setconv_error_and_one_that_callers_already_catch():
    found = {name: one for name, one in vars(errors).items() if inspect.isclass(one)}
    own = {name: one for name, one in found.items() if one.__module__ == "setconv.errors"}
    assert set(own) == {"SetConvError", *ERRORS}
    for name, known in ERRORS.items():
        assert issubclass(own[name], errors.SetConvError)
        assert issubclass(own[name], known)


# --------------------------------------------------------------------------------- architecture


def test_every_module_has_its_place_in_the_layers():
    assert sorted({room(module) for module in MODULES}) == sorted(chain(*LAYERS))


def test_a_module_imports_only_from_rooms_below_its_own_and_never_itself_through_others():
    rank = {name: number for number, names in enumerate(LAYERS) for name in names}
    graph = {module: {name for name, _ in inner_imports(module)} for module in MODULES}
    for module, targets in graph.items():
        assert "setconv" not in targets, f"{module} imports the package itself"
        upward = [one for one in targets if rank[room(one)] < rank[room(module)]]
        assert not upward, f"{module} imports {upward}"
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("package", ALONE)
def test_a_package_that_stands_alone_imports_only_what_it_may(package):
    allowed = tuple(f"setconv.{name}." for name in (package, *ALONE[package]))
    for module in MODULES:
        if f"{module}.".startswith(allowed[0]):
            others = [n for n, _ in inner_imports(module) if not f"{n}.".startswith(allowed)]
            assert not others, f"{module} imports {others}"


# The command line answers --help before torch is there; the cache and a saved model are opened
# without what only some of them need; a study's worker imports what its methods need; rows on disk
# need pyarrow only if they are Arrow's.
LAZY = {"setconv.experiment", "setconv.experiment.cells", "setconv.experiment.data"}
LAZY |= {"setconv.io", "setconv.io.opening", "setconv.io.records"}
LAZY |= {"setconv.pipelines", "setconv.text", "setconv.text.transformer"}


def test_only_front_doors_import_lazily():
    for module in MODULES.keys() - LAZY:
        late = [name for name, top in inner_imports(module) if not top]
        assert module.startswith("setconv.cli") or not late, f"{module} imports {late} late"


def test_torch_is_imported_only_when_a_name_needs_it():
    program = """
import sys
import setconv
heavy = ("torch", "sklearn", "numpy", "tqdm", "safetensors")
assert not [name for name in heavy if name in sys.modules], "import setconv is not light"
assert setconv.presets.PAPER
assert "sklearn" not in sys.modules, "presets are plain data"
assert setconv.metrics.report and "torch" not in sys.modules, "metrics need no torch"
assert setconv.training.__name__ == "setconv.training", "a module is there without its own import"
"""
    environment = {"PYTHONPATH": str(SOURCE.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
