"""A training step of the preset REFERENCE against the authors' computation written out.

"literal" is a plain torch program: encoder 1024-512 with ReLU, SetConv 512-256 by its
N x d x d_o kernel, output 256-128 with ReLU, dot products, cross-entropy, and Adam with three
learning rates, on one episode of 64 rows whose first row of each class is the query. Both take
turns in one fit. The cap is what a step cannot do without, the encoder's products and the
optimiser alone: no layer between them, however fast, brings the ratio above it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from setconv import SetConvClassifier, presets
from setconv.training import Callback, TrainingState

FEATURES, ENCODED, OUT, OUTPUT = 1024, 512, 256, 128
MINORITY = 0.1
_TURN, _WARM_UP = 10, 3
SIZE = presets.REFERENCE["support_size"]


class Literal(nn.Module):
    """The authors' network, as their code computes it."""

    def __init__(self) -> None:
        super().__init__()
        self.downsample = nn.Linear(FEATURES, ENCODED)
        self.g1 = nn.Linear(ENCODED, OUT)
        self.attention = nn.Parameter(torch.ones(ENCODED, OUT))
        self.output = nn.Linear(OUT, OUTPUT, bias=False)

    def represent(self, rows: Tensor, anchor: Tensor) -> Tensor:
        """Return the representation of a set: the kernel made whole, then the sum over it."""
        weight = self.g1(rows - anchor)
        attention = torch.softmax(self.attention, dim=0)
        outer = torch.bmm(weight.T.unsqueeze(2), attention.T.unsqueeze(1))  # d_o x N x d
        summed = (outer.permute(1, 2, 0) * rows.unsqueeze(-1)).sum(dim=(0, 1))
        return torch.relu(self.output(summed / len(rows)))

    def forward(self, classes: list[Tensor], anchor: Tensor) -> Tensor:
        """Return the loss of an episode: the rows of each class, the first of them the query."""
        encoded = [torch.relu(self.downsample(rows)) for rows in classes]
        centre = torch.relu(self.downsample(anchor))
        sets = torch.stack([self.represent(rows[1:], centre) for rows in encoded])
        queries = torch.stack([self.represent(rows[:1], centre) for rows in encoded])
        return functional.cross_entropy(queries @ sets.T, torch.arange(len(classes)))


def make_adam(model: Literal) -> torch.optim.Adam:
    rates = presets.REFERENCE["lr"]
    groups = [
        {"params": model.downsample.parameters(), "lr": rates["encoder"]},
        {"params": [*model.g1.parameters(), model.attention], "lr": rates["setconv"]},
        {"params": model.output.parameters(), "lr": rates["output"]},
    ]
    return torch.optim.Adam(groups, weight_decay=presets.REFERENCE["weight_decay"])


def literal_step() -> Callable[[], None]:
    model = Literal()
    adam = make_adam(model)
    few = int(SIZE * MINORITY) + 1
    classes = [torch.randn(SIZE - few, FEATURES), torch.randn(few, FEATURES)]
    anchor = torch.randn(FEATURES)

    def step() -> None:
        adam.zero_grad()
        model(classes, anchor).backward()
        adam.step()

    return step


def bound() -> Callable[[], None]:
    """Return the encoder's products, forward and backward, and a fused step of Adam."""
    parameters = list(Literal().parameters())
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    adam = torch.optim.Adam(parameters, fused=True)
    rows, weight = torch.randn(SIZE, FEATURES), torch.randn(FEATURES, ENCODED)
    encoded, gradient = torch.empty(SIZE, ENCODED), torch.empty(FEATURES, ENCODED)

    def step() -> None:
        torch.mm(rows, weight, out=encoded)
        torch.mm(rows.T, encoded, out=gradient)
        adam.step()

    return step


def seconds(job: Callable[[], None]) -> float:
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


class Turns(Callback):
    """Time the steps of the fit; after every tenth of them the other jobs have their turn.

    The first runs of a turn find the caches as the others left them, and do not count.
    """

    def __init__(self, jobs: dict[str, Callable[[], None]]) -> None:
        self.jobs = jobs
        self.seconds: dict[str, list[float]] = {"ours": [], **{name: [] for name in jobs}}
        self._started = 0.0

    def on_fit_begin(self, state: TrainingState) -> None:  # noqa: ARG002
        self._started = time.perf_counter()

    def on_step_end(self, state: TrainingState) -> None:
        if state.step % _TURN >= _WARM_UP:
            self.seconds["ours"].append(time.perf_counter() - self._started)
        elif state.step % _TURN == 0:
            for name, job in self.jobs.items():
                self.seconds[name] += [seconds(job) for _ in range(2 * _WARM_UP)][_WARM_UP:]
        self._started = time.perf_counter()


def measure(turns: int) -> dict[str, float]:
    """Return the median seconds of our step ("ours"), the literal one and the cap.

    Parameters
    ----------
    turns : int
        Each is twenty of our steps.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, FEATURES), dtype=np.float32)
    y = rng.random(4000) < MINORITY
    watch = Turns({"literal": literal_step(), "cap": bound()})
    shorter = {
        "max_steps": 2 * _TURN * turns,
        "early_stopping": False,
        "post_size": None,
    }
    SetConvClassifier(
        **{**presets.REFERENCE, **shorter}, callbacks=[watch], progress=False, random_state=0
    ).fit(X, y)
    return {name: statistics.median(values) for name, values in watch.seconds.items()}
