"""Files as users have them: texts, and features with gaps."""

import csv

import numpy as np

INCIDENTS = ["fire in the {}", "crash on the {}", "the {} is burning", "accident near the {}"]
CHATTER = ["lovely {} today", "my cat sleeps on the {}", "reading about the {} again"]
CHATTER += ["who wants to see the {}", "coffee first, then the {}"]
PLACES = ["bridge", "market", "station", "school", "harbour", "museum", "tower", "park"]


def make_rows(n_chatter=90, n_incidents=24):
    """Texts with labels; the minority class has words of its own."""
    rows = []
    kinds = (("chatter", n_chatter, CHATTER, 5), ("incident", n_incidents, INCIDENTS, 3))
    for label, count, texts, step in kinds:
        for number in range(count):
            text = texts[number % len(texts)].format(PLACES[number * step % len(PLACES)])
            rows.append((f"{text} no {number}", label))
    np.random.default_rng(0).shuffle(rows)
    return rows


def write_csv(path, rows, head=("text", "label")):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)
    return path


def write_features(path, n_rows=160, seed=0):
    """Numbers with gaps, a category and an id; 20 rows are fraud."""
    rng = np.random.default_rng(seed)
    fraud = np.arange(n_rows) < 20
    amount = rng.normal(100 + 200 * fraud, 20)
    age = rng.integers(18, 80, n_rows).astype(object)
    age[::13] = ""
    country = np.where(rng.random(n_rows) < 0.5 + 0.4 * fraud, "XX", "NL")
    order = rng.permutation(n_rows)
    rows = [
        [f"id-{number}", f"{amount[i]:.3f}", age[i], country[i], "fraud" if fraud[i] else "fine"]
        for number, i in enumerate(order)
    ]
    return write_csv(path, rows, ("customer_id", "amount", "age", "country", "status"))


def write_noise(path, n_rare=30, n_common=170, seed=0):
    """Numbers that know nothing of the labels."""
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(["rare"] * n_rare + ["common"] * n_common)
    rows = [[*(f"{x:.4f}" for x in rng.normal(size=4)), kind] for kind in kinds]
    return write_csv(path, rows, ("p", "q", "r", "s", "kind"))
