"""``setconv demo``: the whole way on real texts, from an installed package to a report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from setconv.cli.options import figure, out, say, table
from setconv.messages import needed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EPILOG = "Example: [bold]setconv demo -o demo-output/[/]"

CRITICAL, OTHER = "critical", "below critical"
COLUMN = 1  # of the critical ones: classes are sorted

SENTENCES = (
    "Anyone on the network can run commands on the server without logging in.",
    "The settings page lists the names of deleted projects to their former members.",
    "A prompt that is hidden in a web page makes the agent send private files to a stranger.",
    "A very long file name makes the viewer close.",
    "The default password of the administrator is the same in every installation.",
)


def command(
    output: Annotated[
        Path, Option("--output", "-o", help="Folder for the model and the report.")
    ] = Path("demo-output"),
    seed: Annotated[int, Option("--seed", help="Seed of the split and the fits.")] = 0,
) -> None:
    """Find the critical ones among vulnerability reports, and compare with usual methods.

    Encodes the reports with MiniLM, fits SetConv and three others on the same embeddings, prints
    their figures on held-out reports, saves the model, predicts five sentences and writes a page
    about it. The second run takes the embeddings from the cache.
    """
    from sklearn.model_selection import train_test_split

    from setconv.classifier import SetConvClassifier
    from setconv.cli.reporting import show_classes
    from setconv.pipelines import SetConvTextClassifier
    from setconv.report.page import make_report
    from setconv.text.encoder import TextEncoder
    from setconv.validation import Labels

    texts, labels = load_reports()
    say("Vulnerability reports about AI software, from the National Vulnerability Database")
    show_classes(Labels.of(labels))
    parts = train_test_split(texts, labels, test_size=0.3, stratify=labels, random_state=seed)
    train, test, y_train, y_test = parts
    encoder = TextEncoder(progress=True)
    started = time.perf_counter()
    X_train, X_test = encoder.transform(train), encoder.transform(test)
    say(f"texts to embeddings: {time.perf_counter() - started:.1f} s")

    model = SetConvTextClassifier(encoder, SetConvClassifier(random_state=seed))
    seconds = _fit(model, train, y_train)
    found = model.predictions(test)
    took, peers = {"SetConv": seconds}, {}
    for name, peer in make_peers(seed).items():
        took[name] = _fit(peer, X_train, y_train)
        peers[name] = peer.predict(X_test), peer.predict_proba(X_test)[:, COLUMN]
    ours = found.labels, found.probabilities[:, COLUMN]
    _show_figures(y_test == CRITICAL, {"SetConv": ours, **peers}, took)

    model.save(output / "model")
    say(f"model saved in {output / 'model'}")
    new = model.predictions(list(SENTENCES))
    shares = [f"{share:.0%}" for share in new.probabilities[:, COLUMN]]
    rows = zip(SENTENCES, new.labels, shares, strict=True)
    out.print(table("New sentences", ["text", "decision", "probability of critical"], rows))
    page = make_report(
        model,
        test,
        y_test,
        predictions=found,
        train=(train, y_train),
        baselines=peers,
        title="Critical vulnerability reports",
        data_name="held-out reports",
    )
    page.save(output / "report.html")
    out.print(f"report: {(output / 'report.html').resolve()}", markup=False)


def load_reports() -> tuple[list[str], NDArray[np.str_]]:
    """Return the different reports, and whether their severity is critical."""
    import numpy as np

    with needed("setconv demo", "genai-incidents", "demo"):
        from genai_incidents import load_incidents

    severity = {
        " ".join(one["description"].split()): one["severity"]
        for one in load_incidents()
        if "nvd" in one["tags"] and one.get("status") != "retracted"
    }
    labels = [CRITICAL if one == "Critical" else OTHER for one in severity.values()]
    return list(severity), np.array(labels)


def make_peers(seed: int) -> dict[str, Any]:
    """Return the methods that one would use instead."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    with needed("setconv demo", "imbalanced-learn and lightgbm", "demo"):
        from imblearn.over_sampling import SMOTE
        from imblearn.pipeline import make_pipeline as make_sampling_pipeline
        from lightgbm import LGBMClassifier

    weighted = LogisticRegression(class_weight="balanced", max_iter=2000)
    sampled = SMOTE(random_state=seed), LogisticRegression(max_iter=2000)
    trees = LGBMClassifier(class_weight="balanced", random_state=seed, verbose=-1)
    return {
        "logistic regression, balanced": make_pipeline(StandardScaler(), weighted),
        "SMOTE + logistic regression": make_sampling_pipeline(StandardScaler(), *sampled),
        "LightGBM, balanced": trees,
    }


def _fit(model: Any, X: Any, y: Any) -> float:
    """Fit a model and return the seconds that it took."""
    started = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - started


def _show_figures(
    truth: NDArray[np.bool_], methods: dict[str, Any], took: dict[str, float]
) -> None:
    """Print the figures of methods, of which each has its decisions and scores, and their time."""
    from setconv import metrics

    names = ("specificity", "sensitivity", "f1", "g_mean", "auc", "average_precision")
    rows = []
    for method, (labels, scores) in methods.items():
        found = metrics.report(truth, labels == CRITICAL, scores)[True]
        figures = (figure(getattr(found, name)) for name in names)
        rows.append([method, *figures, f"{took[method]:.1f} s"])
    head = ["method", *(metrics.HEADINGS[name] for name in names), "fit"]
    out.print(table(f"{len(truth)} held-out reports, {truth.sum()} critical", head, rows))
