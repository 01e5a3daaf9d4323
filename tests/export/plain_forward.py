"""The model written down once more: numpy in double precision, one member and head at a time."""

import numpy as np


def forward(model, rule, X):
    """Return probabilities and scores, from the arrays that a saved model has."""
    config, arrays = model.describe()
    spec, parts = config["network"], config["parts"]
    heads, views = spec["n_heads"], sum(name.startswith("views/") for name in parts)
    speaking = np.flatnonzero(arrays["chosen"])
    scores = np.zeros((len(X), heads))
    for member in speaking:
        place = f"views/{member % views}" if views else None
        see = (lambda rows, at=place: view(parts[at], arrays, at, rows)) if place else np.asarray
        for head in range(heads):
            own = member * heads + head
            coder = member if spec["share_encoder"] else own
            raw = head_scores(spec, arrays, own, coder, see, X)
            scores[:, head] += (raw - arrays["levels"][own]) / arrays["spreads"][own]
    scores = scores / len(speaking) + np.array(config["offset"])
    return probabilities(rule, scores), scores


def view(kind, arrays, at, rows):
    part = {name: arrays[f"{at}/{name}"] for name in ("mean", "scale", "low", "high", "column",
            "knots", "values", "starts") if f"{at}/{name}" in arrays}  # fmt: skip
    if kind == "normal":
        ends = zip(part["starts"], part["starts"][1:], strict=False)
        columns = [
            np.interp(rows[:, column], part["knots"][start:end], part["values"][start:end])
            for column, (start, end) in enumerate(ends)
        ]
        return np.stack(columns, axis=1)
    if kind == "pieces":
        length = part["high"] - part["low"]
        rows = np.clip((rows[:, part["column"]] - part["low"]) / length, 0, 1)
    return np.clip((rows - part["mean"]) / part["scale"], -5, 5)


def head_scores(spec, arrays, own, coder, see, X):
    net = {
        name.removeprefix("network/"): one.astype(np.float64)
        for name, one in arrays.items()
        if name.startswith("network/")
    }
    width = spec["in_features"]

    def encode(rows):
        rows = np.pad(rows, ((0, 0), (0, width - rows.shape[1])))
        for depth in range(len(spec["encoder"])):
            weight, bias = net[f"encoder.{depth}.weight"], net[f"encoder.{depth}.bias"]
            if weight.ndim == 3:
                weight, bias = weight[coder], bias[coder, 0]
            rows = np.maximum(rows @ weight + bias, 0)
        return rows

    seen = see(X)
    rows = encode(seen)
    powers = np.exp(net["setconv.attention"][own])
    attended = rows @ (powers / powers.sum(axis=0))
    weight, bias = net["setconv.g1.0.weight"][own], net["setconv.g1.0.bias"][own, 0]
    anchors = encode(see(arrays["anchors"][own]))
    embedded = [((anchor - rows) @ weight + bias) * attended for anchor in anchors]

    def finish(each):
        if "output.weight" in net:
            each = [np.maximum(one @ net["output.weight"][own], 0) for one in each]
        whole = np.concatenate(each, axis=1)
        if spec["similarity"] == "dot":
            return whole
        return whole / np.linalg.norm(whole, axis=1, keepdims=True).clip(1e-12)

    means = arrays["sums/total"][own] / arrays["sums/weight"][own][:, None]
    zero, one = finish(np.split(means, len(anchors), axis=1))
    scale = np.exp(net["log_temperature"][own]) if "log_temperature" in net else 1.0
    scores = finish(embedded) @ (one - zero) * scale
    if "linear/weights" in arrays:
        line = arrays["linear/weights"][own].astype(np.float64)
        scores = scores + seen @ line[: seen.shape[1]] + arrays["linear/intercepts"][own]
    return scores


def probabilities(rule, scores):
    two = scores.shape[1] == 1
    if rule.calibrator is None:
        one = 1 / (1 + np.exp(-scores))
        return np.concatenate([1 - one, one], axis=1) if two else one / one.sum(axis=1)[:, None]
    fitted = rule.to_dict()["calibrator"]
    u, (low, high) = (scores - fitted["centre"]) / fitted["scale"], fitted["slopes"]
    if two and low != high:
        logits = high * np.log1p(np.exp(u)) - low * np.log1p(np.exp(-u))
    else:
        logits = low * u
    logits = logits + np.array(fitted["intercepts"])
    if two:
        logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
    if rule.prior is not None:
        logits = logits + np.log(rule.prior / np.array(fitted["prior"]))
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
