"""What a page has to say: reference figures of predictions, and pages to compare with them."""

import warnings

import numpy as np
from plain_intervals import size_of_share
from reading import Page
from sklearn.metrics import (
    average_precision_score,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)
from small_models import make_rows, small
from statsmodels.stats.proportion import proportion_confint

from setconv.report.measure import Evaluation
from setconv.report.page import make_report

NAMES = ["specificity", "sensitivity", "precision", "f1", "g_mean", "auc", "average_precision"]
SHARES = NAMES[:3]


def shown(value):
    return "n/a" if np.isnan(value) else f"{value:.3f}".replace("-", "\u2212")


def reference_figures(is_class, flagged, scores, weights):
    """The seven figures of one class by scikit-learn; what the rows do not say is nan."""
    by = {"sample_weight": weights}
    found = dict.fromkeys(NAMES, np.nan)
    if (~is_class).any():
        found["specificity"] = recall_score(~is_class, ~flagged, **by)
    if is_class.any() or flagged.any():
        found["precision"] = precision_score(is_class, flagged, **by, zero_division=0)
    if is_class.any():
        found["sensitivity"] = recall_score(is_class, flagged, **by)
        found["f1"] = f1_score(is_class, flagged, **by)
    found["g_mean"] = np.sqrt(found["specificity"] * found["sensitivity"])
    if is_class.any() and (~is_class).any():
        found["auc"] = roc_auc_score(is_class, scores, **by)
        found["average_precision"] = average_precision_score(is_class, scores, **by)
    return found


def cosines(model, X, members=None):
    """Of rows with the representative of each class, in its head, over the members that may speak.

    ``members`` has the shape (n_members, n_rows); None: all.
    """
    if members is not None:  # some may not speak otherwise
        model = model._only(np.ones(len(members), dtype=bool))
    classes, width = len(model.classes_), model.representatives_.shape[-1]
    heads = 1 if classes == 2 else classes
    sides = np.reshape(model.representatives_, (-1, heads, 2, width))
    rows = np.reshape(model.transform(X), (len(X), -1, heads, width))
    weights = np.ones((len(sides), len(X))) if members is None else members
    found = []
    for c in range(classes):
        head, side = (0, c) if heads == 1 else (c, 1)
        ours, theirs = rows[:, :, head], sides[:, head, side]
        lengths = np.linalg.norm(ours, axis=-1) * np.linalg.norm(theirs, axis=-1)
        found.append(np.average((ours * theirs).sum(-1) / lengths, axis=1, weights=weights.T))
    return np.stack(found, axis=1)


def evaluation_of(truth, scores, *, threshold=0.0, **changes):
    """What a model would be judged by that decides by these scores, (n,) of the second class."""
    values = np.asarray(scores, dtype=float)
    if values.ndim == 1:
        scores = np.column_stack([-values, values])
        values = np.column_stack([threshold - values, values - threshold])
    given = {
        "labels": tuple(range(values.shape[1])),
        "codes": np.asarray(truth),
        "rows": np.arange(len(truth)),
        "predicted": values.argmax(axis=1),
        "scores": scores,
        "values": values,
        "probabilities": 1 / (1 + np.exp(-values)),
        "weights": np.ones(len(truth)),
    }
    return Evaluation(**given | changes)


def noisy_rows(n, classes, seed):
    """Rows of a frequent class 0 and rare others that no model tells apart without mistakes."""
    X, y = make_rows(n, classes, minority=0.15 * (classes - 1), seed=seed, wrong=0.01)
    return X + np.random.default_rng(seed).normal(size=X.shape) * 0.8, y


def quick(**parameters):
    shape = {"encoder": (16,), "out_features": 8, "max_steps": 30, "n_episodes": 4}
    return small(**shape | parameters)


CASES = [
    "two", "no positives", "no others", "one row", "five rows", "perfect", "three", "out of fold",
    "three out of fold", "forward in time", "weights", "prior", "prior out of fold",
    "prior, no positives", "three, prior", "a class unjudged",
    "the rare class unjudged", "the common class unjudged",
]  # fmt: skip


class Case:
    """A page, and what the predictions say."""

    def __init__(self, model, X, y, out_of_fold):
        self.model, self.X, self.out_of_fold = model, X, out_of_fold
        self.said = model.predict_out_of_fold() if out_of_fold else model.predictions(X)
        self.y, self.labels = np.asarray(y)[self.said.rows], self.said.labels
        self.report = make_report(model, X, y, out_of_fold=out_of_fold)
        self.page = Page(self.report.html)
        self.classes = model.classes_.tolist()
        self.rare = sorted(self.classes, key=lambda c: (self.known(c), -self.classes.index(c)))
        self.main = self.rare[0]
        self.prior = None
        if model.prior_ is not None:
            self.prior = dict(zip(self.classes, model.prior_, strict=True))
        if self.said.weights is not None:
            self.w = self.said.weights
        elif self.prior:
            self.w = np.array([self.prior[c] / np.mean(self.y == c) for c in self.y.tolist()])
        else:
            self.w = np.ones(len(self.y))
        self.weighted = len(set(self.w.tolist())) > 1
        self.unjudged = [c for c in self.classes if out_of_fold and not (self.y == c).any()]

    def known(self, c):
        return self.model.class_counts_[self.classes.index(c)]

    def share(self, flags):
        return self.w[flags].sum() / self.w.sum()

    def column(self, values, c):
        """Scores or decision values of a class."""
        place = self.classes.index(c)
        if values.ndim == 1:
            return values if place else -values
        return values[:, place]

    def margin(self, c):
        values = self.said.decision_values
        own = self.column(values, c)
        if values.ndim == 1:
            return own
        return own - np.delete(values, self.classes.index(c), axis=1).max(axis=1)

    def who(self, place):
        """Return who judges a row: the model, or the members that left it out."""
        return self.model._only(self.said.left_out[:, place]) if self.out_of_fold else self.model

    def figures(self, c):
        """The seven figures, as far as they can be told."""
        found = reference_figures(
            self.y == c, self.labels == c, self.column(self.said.scores, c), self.w
        )
        if c in self.unjudged:
            return dict.fromkeys(found, np.nan)
        if len(self.classes) - len(self.unjudged) == 1:
            return dict.fromkeys(found, np.nan) | {"sensitivity": found["sensitivity"]}
        return found

    def interval(self, c, name):
        """Wilson's, of one of the shares."""
        base = dict(zip(SHARES, (self.y != c, self.y == c, self.labels == c), strict=True))[name]
        if not base.any():
            return 0.0, 1.0
        right = self.labels == self.y if name != "specificity" else self.labels != c
        could = base if name != "precision" else self.y == self.y
        n = self.size(base, right, could)
        bounds = proportion_confint(self.figures(c)[name] * n, n, method="wilson")
        return tuple(round(bound, 12) for bound in bounds)

    def size(self, flags, right, could):
        """How many rows a share of the flagged ones rests on."""
        if not self.weighted:
            return flags.sum()
        codes = np.searchsorted(self.classes, self.y)
        return size_of_share(codes, self.w, flags, right, could)

    def check_cells(self, c, found):
        """Compare the cells of a line of figures: values, and intervals where there are any."""
        right = self.figures(c)
        for name, (value, interval) in zip(NAMES, found, strict=True):
            assert value == shown(right[name])
            if value == "n/a":
                assert interval == ""
                continue
            low, high = interval.split(" to ")
            assert low != high
            assert float(low) - 5e-4 <= right[name] <= float(high) + 5e-4
            if name in SHARES:
                assert [low, high] == [shown(bound) for bound in self.interval(c, name)]


def make_cases():
    """Model, rows, labels, predictions, and how the page is asked for."""
    X, y = noisy_rows(360, 2, seed=3)
    y = np.where(y == 1, "rare", "common")
    fit, other = slice(0, 160), slice(160, None)
    X3, y3 = noisy_rows(420, 3, seed=5)
    weights = np.random.default_rng(2).gamma(1, size=160) + 0.05
    model = quick().fit(X[fit], y[fit])
    three = quick(max_steps=40).fit(X3[:200], y3[:200])
    weighted = quick().fit(X[fit], y[fit], weights)
    forward = quick().fit(X[fit], y[fit], time=np.arange(160)[::-1])
    prior = quick(objective="f1").fit(X[fit], y[fit]).set_prior(0.03).set_params(objective=None)
    prior3 = quick().fit(X3[:200], y3[:200]).set_prior({0: 0.9, 1: 0.06, 2: 0.04})
    single, alone = y3[:200].copy(), y[fit].copy()
    single[single == 2] = 0
    single[7] = 2
    alone[:] = "common"
    alone[[3, 8, 30]] = "rare"
    groups = np.where(alone == "rare", -1, np.arange(160))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that cannot be judged
        missing = quick().fit(X3[:200], single)
        bare = quick().fit(X[fit], alone, groups=groups)
        crowd = quick().fit(X[fit], y[fit], groups=np.where(y[fit] == "common", -1, np.arange(160)))
    common, rare = (np.flatnonzero(y == label)[-n:] for label, n in (("common", 90), ("rare", 20)))
    few = np.r_[rare[:1], common[:4]]
    found = {
        "two": (model, X[other], y[other], False),
        "no positives": (model, X[common], y[common], False),
        "no others": (model, X[rare], y[rare], False),
        "one row": (model, X[common[:1]], y[common[:1]], False),
        "five rows": (model, X[few], y[few], False),
        "perfect": (model, X[other], model.predict(X[other]), False),
        "three": (three, X3[200:], y3[200:], False),
        "out of fold": (model, X[fit], y[fit], True),
        "three out of fold": (three, X3[:200], y3[:200], True),
        "forward in time": (forward, X[fit], y[fit], True),
        "weights": (weighted, X[fit], y[fit], True),
        "prior": (prior, X[other], y[other], False),
        "prior out of fold": (prior, X[fit], y[fit], True),
        "prior, no positives": (prior, X[common], y[common], False),
        "three, prior": (prior3, X3[200:], y3[200:], False),
        "a class unjudged": (missing, X3[:200], single, True),
        "the rare class unjudged": (bare, X[fit], alone, True),
        "the common class unjudged": (crowd, X[fit], y[fit], True),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is undefined is shown, and nothing warns of it
        return {name: Case(*given) for name, given in found.items()}


def cells(y, w, c, alarm):
    """What the explorer shows for alarms: rows in the table, and rates by weight."""
    is_c = y == c
    parts = {"tp": is_c & alarm, "fp": ~is_c & alarm, "fn": is_c & ~alarm, "tn": ~is_c & ~alarm}
    of = reference_figures(is_c, alarm, w, w)
    return {
        **{name: str(part.sum()) for name, part in parts.items()},
        **{"spec": shown(of["specificity"]), "sens": shown(of["sensitivity"])},
        **{name: shown(of[name]) for name in ("precision", "f1", "g_mean")},
        "alarms": f"{1000 * w[alarm].sum() / w.sum():.1f}",
    }
