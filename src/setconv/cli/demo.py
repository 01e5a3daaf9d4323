"""``setconv demo``: the whole way on real reviews, from texts to a report."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setconv.cli.options import figure, out, say, table

if TYPE_CHECKING:
    from setconv.decisions.rule import Predictions

EPILOG = "Example: [bold]setconv demo -o demo-output/[/]"

SENTENCES = (
    "It stopped working after two days and support never answered.",
    "My kids ask it for songs all day long, we love it.",
    "Sound is fine, but it keeps losing the wifi and I am sending it back.",
    "Does what it says. Easy to set up.",
    "I expected so much more, a waste of money.",
)


def command(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the model and the report.")
    ] = Path("demo-output"),
    seed: Annotated[int, typer.Option("--seed", help="Seed of the split and the fits.")] = 0,
) -> None:
    """Find the complaints among Amazon Alexa reviews, and compare with what one would use instead.

    Encodes the reviews with MiniLM, fits SetConv and three others on the same embeddings, prints
    their figures on held-out reviews, saves the model, predicts five sentences and writes a
    report. The second run takes the embeddings from the cache.
    """
    import numpy as np

    from setconv.classifier import SetConvClassifier
    from setconv.cli.demo_data import NEGATIVE, fit_peers, load_reviews
    from setconv.cli.reporting import show_classes
    from setconv.pipelines import SetConvTextClassifier
    from setconv.text.encoder import TextEncoder

    reviews = load_reviews(seed)
    say(f"Amazon Alexa reviews; {reviews.n_removed} empty or repeated ones removed")
    show_classes(np.concatenate([reviews.train_labels, reviews.test_labels]))
    encoder = TextEncoder(progress=True)
    started = time.perf_counter()
    X_train, X_test = (encoder.transform(t) for t in (reviews.train_texts, reviews.test_texts))
    say(f"texts to embeddings: {time.perf_counter() - started:.1f} s")

    started = time.perf_counter()
    model = SetConvTextClassifier(encoder, SetConvClassifier(random_state=seed))
    model.fit(reviews.train_texts, reviews.train_labels)
    seconds = time.perf_counter() - started
    truth = reviews.test_labels == NEGATIVE
    answers = model.predictions(reviews.test_texts)
    column = model.classes_.tolist().index(NEGATIVE)
    ours = (answers.labels, answers.probabilities[:, column], seconds)
    peers = fit_peers(X_train, reviews.train_labels, X_test, seed)
    rows = [
        [name, *_figures(truth, labels == NEGATIVE, scores), f"{taken:.1f} s"]
        for name, (labels, scores, taken) in {"SetConv": ours, **peers}.items()
    ]
    head = ["method", "Spec", "Sens", "F1", "G-mean", "AUC", "AP", "fit"]
    out.print(table(f"{len(truth)} held-out reviews, {truth.sum()} complaints", head, rows))

    model.save(output / "model")
    say(f"model saved in {output / 'model'}")
    _predict_sentences(model)
    _write_report(model, reviews, answers, peers, output / "report.html")


def _figures(truth: Any, predicted: Any, scores: Any) -> list[str]:
    from setconv import metrics

    found = metrics.report(truth, predicted, scores)[True]
    names = ("specificity", "sensitivity", "f1", "g_mean", "auc", "average_precision")
    return [figure(getattr(found, name)) for name in names]


def _predict_sentences(model: Any) -> None:
    from setconv.cli.demo_data import NEGATIVE

    found = model.predictions(list(SENTENCES))
    column = model.classes_.tolist().index(NEGATIVE)
    rows = [
        [text, label, f"{share:.0%}"]
        for text, label, share in zip(
            SENTENCES, found.labels, found.probabilities[:, column], strict=True
        )
    ]
    out.print(table("New sentences", ["text", "decision", "probability of a complaint"], rows))


def _write_report(
    model: Any, reviews: Any, answers: Predictions, peers: dict[str, Any], path: Path
) -> None:
    from setconv.report.page import make_report

    page = make_report(
        model,
        reviews.test_texts,
        reviews.test_labels,
        predictions=answers,
        train=(reviews.train_texts, reviews.train_labels),
        # The page takes scores of the second class; that of complaints is the first.
        baselines={name: (labels, -scores) for name, (labels, scores, _) in peers.items()},
        title="Complaints among Amazon Alexa reviews",
        data_name="held-out reviews",
    )
    page.save(path)
    out.print(f"report: {path.resolve()}", markup=False)
