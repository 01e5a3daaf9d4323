"""The intervals of a report once more: figures by scikit-learn, bounds by scipy and statsmodels."""

import math

import numpy as np
from scipy import stats
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    matthews_corrcoef,
    precision_score,
    recall_score,
    roc_auc_score,
)
from statsmodels.stats.proportion import proportion_confint

from setconv.metrics.intervals import DRAWS
from setconv.sampling import bootstrap_weights

SHARES = ("specificity", "sensitivity", "precision")


def figures(truth, alarm, scores, chances, weights):
    """Every figure of a class against the rest; truth and alarm are bools."""
    given = {"sample_weight": weights}
    sens, spec = recall_score(truth, alarm, **given), recall_score(~truth, ~alarm, **given)
    return {
        "specificity": spec,
        "sensitivity": sens,
        "precision": precision_score(truth, alarm, zero_division=0, **given),
        "f1": f1_score(truth, alarm, **given),
        "g_mean": math.sqrt(sens * spec),
        "auc": roc_auc_score(truth, scores, **given),
        "average_precision": average_precision_score(truth, scores, **given),
        "balanced_accuracy": (sens + spec) / 2,
        "mcc": float(np.nan_to_num(matthews_corrcoef(truth, alarm, **given))),
        "brier": np.average((chances - truth) ** 2, weights=weights),
    }


def draws(codes, weights, units=None):
    """The weights of the rows in each draw; units are drawn whole."""
    rng = np.random.default_rng(0)
    if units is None:
        return [weights * bootstrap_weights(codes, rng) for _ in range(DRAWS)]
    counts = np.bincount(codes)
    order = sorted(range(len(counts)), key=lambda c: counts[c])
    names = sorted(set(units.tolist()))
    kinds = [min(codes[units == name], key=order.index) for name in names]
    place = np.array([names.index(unit) for unit in units])
    return [weights * bootstrap_weights(np.array(kinds), rng)[place] for _ in range(DRAWS)]


def size(weights, flags, units=None):
    """Rows of equal weight that stand alone and tell as much."""
    if units is None:
        units = np.arange(len(weights))
    sums = [weights[flags & (units == unit)].sum() for unit in np.unique(units[flags])]
    return np.sum(sums) ** 2 / np.sum(np.square(sums))


def size_of_share(codes, weights, flags, right, could, units=None):
    """The size of a share of weighted rows, by the variance of a ratio; row by row."""
    names = list(range(len(codes))) if units is None else units.tolist()

    def heaviness(rows, c):
        """What a row of the class weighs, in rows that stand alone."""
        whole, alone, own = {}, {}, {}
        for i in np.flatnonzero(rows):
            whole[names[i]] = whole.get(names[i], 0) + weights[i]
            alone[names[i], codes[i]] = alone.get((names[i], codes[i]), 0) + weights[i]
            own[codes[i]] = own.get(codes[i], 0) + weights[i]
        if not own.get(c):
            return 0.0
        joint = sum(w**2 for w in whole.values()) / sum(w**2 for w in alone.values())
        return joint * sum(w**2 for (_, code), w in alone.items() if code == c) / own[c]

    classes = np.unique(codes)
    most = max(heaviness(could, c) for c in classes)
    # As if one row more of that weight were right, and one wrong.
    total = weights[flags].sum() + 2 * most
    p = (weights[flags & right].sum() + most) / total
    variance = (most * (1 - p) / total) ** 2 + (most * p / total) ** 2
    for c in classes:
        by = heaviness(flags, c)
        for i in np.flatnonzero(flags & (codes == c)):
            variance += by * weights[i] * ((right[i] - p) / total) ** 2
    known = p * (1 - p) / variance - 2
    return min(max(known, 0), len({names[i] for i in np.flatnonzero(flags)}))


def student(value, replicates, n, least=0.0):
    """Student's interval on the scale of the log-odds, by the delta method."""
    share = (value - least) / (1 - least)
    error = np.std(replicates) / (1 - least) * math.sqrt(n / (n - 1)) / (share * (1 - share))
    half = stats.t.ppf(0.975, n - 1) * error
    logit = math.log(share / (1 - share))
    return tuple(least + (1 - least) / (1 + math.exp(-(logit + side))) for side in (-half, half))


def plain_intervals(codes, c, alarm, scores, chances, weights=None, units=None):
    """Return the interval of every figure of class ``c``; what no draw moves is left out."""
    weights = np.ones(len(codes)) if weights is None else weights
    truth = codes == c
    values = figures(truth, alarm, scores, chances, weights)
    again = [figures(truth, alarm, scores, chances, one) for one in draws(codes, weights, units)]
    every = np.ones(len(codes), dtype=bool)
    bases = dict(zip(SHARES, (~truth, truth, alarm), strict=True))
    sizes = {name: size(weights, flags, units) for name, flags in bases.items()}
    if len(set(weights.tolist())) > 1:
        shares = {
            "specificity": (~truth, ~alarm, ~truth),
            "sensitivity": (truth, alarm, truth),
            "precision": (alarm, truth, every),
        }
        sizes = {n: size_of_share(codes, weights, *one, units) for n, one in shares.items()}
    smaller = min(sizes["specificity"], sizes["sensitivity"])
    found = {}
    for name, value in values.items():
        if name in SHARES:
            n = sizes[name]
            found[name] = proportion_confint(value * n, n, method="wilson")
        elif np.std([one[name] for one in again]) > 1e-9:
            least = -1.0 if name == "mcc" else 0.0
            found[name] = student(value, [one[name] for one in again], smaller, least)
    return found
