"""The ONNX graph of a fitted model: what `setconv.model` and `setconv.decisions` compute.

It has the same numbers in the same order: rows in double precision, or rounded to float32 first
where an encoder makes them so; views of them, in double; the network and the linear part in
float32; and everything from the scores on in double. All heads of all members that speak are
computed at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper

from setconv.decisions.rule import DecisionRule
from setconv.errors import ParameterError
from setconv.model import SetConvModel
from setconv.preprocessing import CLIP, NARROW, Normal, Pieces, View

Array = NDArray[Any]
OPSET = 17
_IR = 8  # the format of files that came with this opset: older runtimes read it
FLOAT, DOUBLE, INTEGER = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64


def to_onnx(model: Any) -> ModelProto:
    """Return the graph of a fitted model, from rows of numbers to its answers.

    The input ``X`` is double, (n, n_features): of a model of texts their embeddings, of one of
    tables what its encoder makes of them. The outputs are ``label``, the place of the class among
    ``classes_``, int64 (n,); ``probabilities``, double (n, n_classes); and ``decision``, double
    (n,) or (n, n_classes), as `SetConvClassifier.decision_function`. The initialisers
    ``threshold`` and ``prior`` are those of the model and can be changed in the graph; the
    paper's rule has no prior, and a cost matrix of more than two classes is ``cost``.

    Parameters
    ----------
    model : SetConvClassifier, SetConvTextClassifier or SetConvTableClassifier
        Fitted.

    Returns
    -------
    onnx.ModelProto
        Of opset 17, checked.
    """
    classifier = getattr(model, "classifier_", model)._fitted()
    inner: SetConvModel = classifier._model
    if inner.front is not None and inner.n_features > NARROW:
        raise ParameterError(
            f"The model was fitted on sparse rows of {inner.n_features} columns: a graph has dense "
            f"ones. What works: setconv predict, or a fit on dense rows or up to {NARROW} columns."
        )
    rule: DecisionRule = classifier._decision.rule
    add, info = _Graph(), helper.make_tensor_value_info
    # Our encoders make rows of float32, those of others are taken as they are.
    rounded = hasattr(getattr(model, "encoder_", None), "describe")
    with torch.inference_mode():
        _decide(add, rule, _scores(add, inner, _views(add, inner, rounded=rounded)))
    wide: list[Any] = ["n", len(rule.grounds.classes)]
    outputs = [info("label", INTEGER, ["n"]), info("probabilities", DOUBLE, wide)]
    outputs.append(info("decision", DOUBLE, wide[: len(rule.thresholds)]))
    given = [info("X", DOUBLE, ["n", inner.n_features])]
    graph = helper.make_graph(add.nodes, "setconv", given, outputs, add.initialisers)
    opset = [helper.make_opsetid("", OPSET)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=_IR, producer_name="setconv")
    checker.check_model(made, full_check=True)
    return made


class _Graph:
    """Nodes and initialisers; called, it adds a node and returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.initialisers: list[TensorProto] = []

    def __call__(self, kind: str, *inputs: Any, name: str = "", **attributes: Any) -> str:
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        output = name or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [output], **attributes))
        return output

    def constant(self, values: Any, name: str = "") -> str:
        """Add numbers under a name, and return it."""
        name = name or f"constant_{len(self.initialisers)}"
        self.initialisers.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name


def _views(add: _Graph, model: SetConvModel, *, rounded: bool) -> str:
    """Add what each member that speaks sees, (members, 1, n, width); one view is there once."""
    rows, kind = "X", np.float32 if rounded else np.float64
    if rounded:
        rows = add("Cast", add("Cast", rows, to=FLOAT), to=DOUBLE)
    views, width = model.scaler.views, model.scaler.width(model.n_features)
    found = [(_view(add, one, rows, kind), one.width) for one in views] or [(rows, width)]
    seen = []
    for columns, own in found:
        padded = add("Pad", add("Cast", columns, to=FLOAT), np.array([0, 0, 0, width - own]))
        seen.append(add("Unsqueeze", padded, np.array([0, 1])))
    places = np.flatnonzero(model.chosen) % len(seen)
    if not places.any():
        return seen[0]
    return add("Gather", add("Concat", *seen, axis=0), places)


def _view(add: _Graph, view: View, rows: str, kind: Any) -> str:
    """Add a view of rows, whose means and scales the library rounds to ``kind``."""
    if isinstance(view, Normal):
        return _normal(add, view, rows)
    if isinstance(view, Pieces):
        inside = add("Sub", add("Gather", rows, view.column, axis=1), view.low)
        filled = add("Div", inside, view.high - view.low)
        rows, kind = add("Clip", filled, np.float64(0), np.float64(1)), np.float32
    mean, scale = (one.astype(kind).astype(np.float64) for one in (view.mean, view.scale))
    scaled = add("Div", add("Sub", rows, mean), scale)
    return add("Clip", scaled, np.float64(-CLIP), np.float64(CLIP))


def _normal(add: _Graph, view: Normal, rows: str) -> str:
    """Add `numpy.interp` for each column: the last knot below is found by halving.

    A knot is its number among those of all columns. It takes as many steps as the number of knots
    has digits in base two, each on arrays of the shape of the rows.
    """
    starts, last = view.starts[:-1], view.starts[1:] - 1
    rows = add("Min", add("Max", rows, view.knots[starts]), view.knots[last])
    knots, place = add.constant(view.knots), add.constant(starts[None])
    for digit in reversed(range(int((last - starts).max()).bit_length())):
        further = add("Min", add("Add", place, np.array(1 << digit)), last)
        beyond = add("GreaterOrEqual", rows, add("Gather", knots, further))
        place = add("Where", beyond, further, place)
    slopes = np.zeros_like(view.values)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        slopes[:-1] = np.diff(view.values) / np.diff(view.knots)
    slopes[last] = 0  # beyond the ends the map is level
    # A knot itself has its own value, however steep it is after it.
    way = add("Sub", rows, add("Gather", knots, place))
    rise = add("Mul", way, add("Gather", np.nan_to_num(slopes), place))
    return add("Add", rise, add("Gather", view.values, place))


def _scores(add: _Graph, model: SetConvModel, seen: str) -> str:
    """Add the log-odds of each head, averaged over the members, (n, heads)."""
    network = model.network

    def stacked(values: Any) -> Array:
        """Return matrices of heads or encoders as (members, heads, ...)."""
        array = torch.as_tensor(values).cpu().numpy()
        return array.reshape(network.n_members, -1, *array.shape[-2:])[model.chosen]

    rows = seen
    for layer in network.layers:
        assert layer.bias is not None
        bias = stacked(layer.bias.reshape(-1, 1, layer.weight.shape[-1]))
        rows = add("Relu", add("Add", add("MatMul", rows, stacked(layer.weight)), bias))
    kernels = network.kernels(model.scaled_anchors())  # for several anchors, side by side
    both = [(*one.matrix.split(one.out_features, dim=-1), one.anchor_part) for one in kernels]
    attention, slope, part = (stacked(torch.cat(one, dim=-1)) for one in zip(*both, strict=True))
    weighing = add("Sub", part, add("MatMul", rows, slope))
    embedded = add("Mul", weighing, add("MatMul", rows, attention))
    if network.output is not None:  # for each anchor alike
        blocks = [torch.block_diag(*[one] * len(kernels)) for one in network.output.weight]
        embedded = add("Relu", add("MatMul", embedded, stacked(torch.stack(blocks))))
    if network.log_temperature is not None:
        embedded = add("LpNormalization", embedded, axis=-1, p=2)
    sides, levels = model.representatives, model.levels
    difference = ((sides[:, 1] - sides[:, 0]) * network.scale()).unsqueeze(-1)
    scores = add("Cast", add("MatMul", embedded, stacked(difference)), to=DOUBLE)
    if model.linear is not None:
        lines = add("MatMul", seen, stacked(model.linear.weights[:, :, None]))
        scores = add("Add", scores, add("Cast", lines, to=DOUBLE))
        levels = levels - model.linear.intercepts
    scores = add("Sub", scores, stacked(levels[:, None, None]))
    scores = add("Div", scores, stacked(model.spreads[:, None, None]))
    scores = add("Squeeze", add("ReduceMean", scores, axes=[0], keepdims=0), np.array([2]))
    return add("Add", add("Transpose", scores, perm=[1, 0]), np.array(model.offset))


def _decide(add: _Graph, rule: DecisionRule, scores: str) -> None:
    """Add the outputs, from scores (n, heads)."""
    many, logits = len(rule.thresholds) > 1, _logits(add, rule, scores)
    if not many:
        logits = add("Mul", logits, np.array([0.0, 1.0]))
    if rule.calibrator is not None:
        known = np.array(rule.calibrator.prior)
        prior = add("Log", add.constant(known if rule.prior is None else rule.prior, "prior"))
        logits = add("Add", logits, add("Sub", prior, np.log(known)))
    shares = add("Softmax", logits, axis=1, name="probabilities")
    if many and rule.objective.cost is not None:
        cost = add.constant(rule.objective.costs(rule.grounds.class_weights), "cost")
        worth = add("Neg", add("MatMul", shares, cost))
        mean = add("ReduceMean", worth, axes=[1], keepdims=1)
        add("Sub", worth, mean, name="decision")
    else:
        values = add("Sub", scores, add.constant(rule.thresholds, "threshold"))
        shape = np.array([-1, len(rule.thresholds)] if many else [-1])
        add("Reshape", values, shape, name="decision")
    if many:
        add("ArgMax", "decision", axis=1, keepdims=0, name="label")
    else:
        add("Cast", add("Greater", "decision", np.float64(0)), to=INTEGER, name="label")


def _logits(add: _Graph, rule: DecisionRule, scores: str) -> str:
    """Add the log-odds of the classes in the training data, or of the second of two alone."""
    calibrator, many = rule.calibrator, len(rule.thresholds) > 1
    if calibrator is None:  # the paper's rule
        return add("Neg", _softplus(add, add("Neg", scores))) if many else scores
    u = add("Div", add("Sub", scores, np.float64(calibrator.centre)), np.float64(calibrator.scale))
    low, high = calibrator.slopes
    bend = add("Mul", _softplus(add, u), np.float64(high - low))  # nothing for a straight line
    return add("Sum", bend, add("Mul", u, np.float64(low)), np.array(calibrator.intercepts))


def _softplus(add: _Graph, values: str) -> str:
    """Add log(1 + exp(x)), which runtimes have in single precision only."""
    rest = add("Add", add("Exp", add("Neg", add("Abs", values))), np.float64(1))
    return add("Add", add("Max", values, np.float64(0)), add("Log", rest))
