"""Documentation that the code can contradict: it is checked against the code."""

import ast
import importlib
import inspect
import pkgutil
import re

import pytest

import setconv
from setconv.classifier import SetConvClassifier
from setconv.nn.layer import SetConv
from setconv.nn.network import SetConvNetwork
from setconv.params import FitParameters
from setconv.training import TrainingState

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(setconv.__path__, "setconv.")
    if not any(part.startswith("_") for part in module.name.split("."))
)


def documented(obj, section):
    """Names under a numpydoc section; ``a, b : int`` documents both."""
    text = inspect.cleandoc(obj.__doc__)
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", text, re.S | re.M)
    assert found, f"{obj.__name__} has no section {section}"
    heads = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", found[1], re.M)
    return [name.strip() for head in heads for name in head.split(",")]


def public_members(module):
    imported = importlib.import_module(module)
    for name, value in vars(imported).items():
        here = getattr(value, "__module__", None) == module
        if here and not name.startswith("_") and (inspect.isclass(value) or callable(value)):
            yield f"{module}.{name}", value


def test_the_reader_of_sections_finds_names():
    class Sample:
        """A sample.

        Parameters
        ----------
        First: a heading

        one : int
            A colon : inside.

        Second: another one

        two, three : float
        four
            Text.

        Attributes
        ----------
        five_ : int
        """

    assert documented(Sample, "Parameters") == ["one", "two", "three", "four"]
    assert documented(Sample, "Attributes") == ["five_"]


@pytest.mark.parametrize("cls", [SetConvClassifier, SetConvNetwork, SetConv])
def test_the_documented_parameters_are_those_of_the_constructor_in_its_order(cls):
    assert documented(cls, "Parameters") == list(inspect.signature(cls).parameters)


@pytest.mark.parametrize("method", ["fit", "partial_fit", "set_objective", "set_prior"])
def test_the_documented_arguments_of_a_method_are_those_that_it_takes(method):
    function = getattr(SetConvClassifier, method)
    assert documented(function, "Parameters") == list(inspect.signature(function).parameters)[1:]


def test_the_documented_fields_of_the_training_state_are_its_fields():
    fields = list(inspect.signature(TrainingState).parameters)
    assert documented(TrainingState, "Attributes") == fields


def test_every_default_in_the_docstring_is_the_default_of_the_code():
    text = inspect.cleandoc(SetConvClassifier.__doc__)
    stated = dict(re.findall(r"^(\w+) : [^\n]*default=([^\n]+)$", text, re.M))
    # The line of monitor is too long for its default, which stands in the text below it.
    stated["monitor"] = re.search(r"validation rows, default ([^\n]+)\.$", text, re.M)[1]
    parameters = inspect.signature(SetConvClassifier).parameters
    assert set(stated) == set(parameters)
    for name, default in stated.items():
        assert ast.literal_eval(default) == parameters[name].default, name


def test_every_parameter_that_a_fit_reads_is_a_constructor_parameter():
    assert set(FitParameters.__dataclass_fields__) <= set(SetConvClassifier().get_params())


def test_the_documented_attributes_are_those_that_a_fit_leaves(fitted):
    names = set(documented(SetConvClassifier, "Attributes"))
    public = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
    assert names - {"feature_names_in_"} == public
    assert all(name.endswith("_") for name in names)


def test_a_report_out_of_fold_is_an_attribute_exactly_when_there_are_members(fitted, binary):
    alone = SetConvClassifier(n_members=1, max_steps=0).fit(*binary)
    assert fitted.oof_report_ == fitted.report_
    assert {name for name in vars(fitted) if name not in vars(alone)} == {"oof_report_"}


def test_feature_names_are_an_attribute_exactly_when_there_are_names(fitted, binary):
    pandas = pytest.importorskip("pandas")
    X, y = binary
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    named = SetConvClassifier(n_members=1, max_steps=0).fit(frame, y)
    assert named.feature_names_in_.tolist() == list("abcdefgh")
    assert not hasattr(fitted, "feature_names_in_")


@pytest.mark.parametrize("module", ["setconv", *MODULES])
def test_every_public_class_function_and_method_has_a_docstring(module):
    assert importlib.import_module(module).__doc__
    for name, value in public_members(module):
        assert value.__doc__, f"{name} has no docstring"
        if not inspect.isclass(value):
            continue
        for method, function in vars(value).items():
            if inspect.isfunction(function) and not method.startswith("_"):
                assert inspect.getdoc(getattr(value, method)), f"{name}.{method} has no docstring"
