"""Documentation that the code can contradict: it is checked against the code."""

import ast
import inspect
import re

import pandas as pd
import pytest

from setconv.classifier import SetConvClassifier
from setconv.nn.layer import SetConv
from setconv.nn.network import SetConvNetwork
from setconv.training import TrainingState


def documented(obj, section):
    """Names under a numpydoc section; ``a, b : int`` documents both."""
    text = inspect.cleandoc(obj.__doc__)
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", text, re.S | re.M)
    assert found, f"{obj.__name__} has no section {section}"
    heads = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", found[1], re.M)
    return [name.strip() for head in heads for name in head.split(",")]


CONSTRUCTORS = [SetConvClassifier, SetConvNetwork, SetConv]
METHODS = [getattr(SetConvClassifier, name) for name in ("fit", "partial_fit", "predict_to")]


@pytest.mark.parametrize("one", CONSTRUCTORS + METHODS)
def test_the_documented_parameters_are_those_that_it_takes_in_their_order(one):
    assert documented(one, "Parameters") == [
        name for name in inspect.signature(one).parameters if name != "self"
    ]


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


def test_the_documented_attributes_are_those_that_a_fit_leaves(fitted, binary):
    names = set(documented(SetConvClassifier, "Attributes"))
    assert {name for name in names if hasattr(fitted, name)} == names - {"feature_names_in_"}
    told = {name for name in (*vars(fitted), *vars(SetConvClassifier)) if name.endswith("_")}
    assert {name for name in told if not name.startswith("_")} == names - {"feature_names_in_"}
    frame = pd.DataFrame(binary[0], columns=list("abcdefgh"))
    alone = SetConvClassifier(n_members=1, max_steps=0).fit(frame, binary[1])
    assert {name for name in names if hasattr(alone, name)} == names - {"oof_report_"}
    assert alone.feature_names_in_.tolist() == list("abcdefgh")
    assert not [name for name in names if hasattr(SetConvClassifier(), name)]
