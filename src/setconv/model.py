"""A fitted model: what a prediction needs, and what its kernel looks at.

`SetConvModel` scores rows by representatives, which `SideSums` keep open to new rows. The anchor of
each head comes from the smaller of its two sides, by `compute_anchors`. The paper leaves it to the
user and takes the mean of the minority class; for a large minority it suggests a random subset
(section 3.2). K-means centroids are several anchors, and the embeddings for each are laid side by
side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse
from sklearn.utils import gen_batches
from torch import Tensor
from torch.nn import functional

from setconv.data import BlockSums, Features, Matrix, Part, count_heads, row_blocks
from setconv.episodes import ABSENT, head_sides
from setconv.errors import DataError, ParameterError
from setconv.linear import LINEAR_PARTS, LinearPart
from setconv.nn.network import SetConvNetwork
from setconv.preprocessing import FRONTS, NARROW, VIEWS, Scaler, SparseFront
from setconv.sampling import Split

Array: TypeAlias = NDArray[Any]
Anchor: TypeAlias = str | Callable[[Array], ArrayLike] | ArrayLike
# Rows go through the network in blocks of exactly this many (the last one padded): the products
# then have one shape, and a row's result does not depend on the batch that it came in.
BLOCK = 256
BATCH = 32 * BLOCK  # rows at a time, which bounds memory
SUBSET = 100  # rows whose mean is the anchor "subset"
CENTROIDS = 4  # anchors of "kmeans"


_ARRAYS = ("anchors", "levels", "spreads", "chosen")  # attributes that are arrays by themselves


class _Block(NamedTuple):
    """Rows on their way through a model: which, as they came, as seen, and ``h(x)``.

    The last two are padded to BLOCK rows: (n_views, BLOCK, n_inputs), (n_stacked, BLOCK, features).
    """

    numbers: slice
    rows: Any
    views: Tensor
    embedded: Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class SetConvModel:
    """Everything that a prediction needs, with no ties to scikit-learn.

    A model does not change: rows, scales and members that speak make another one of it.

    Attributes
    ----------
    network : SetConvNetwork
    scaler : Scaler
    anchors : float64 array of shape (n_stacked, n_anchors, n_features)
        In the units of the input; the heads of the first member come first.
    n_classes : int
    offset : list of float, one a head
        Added to the scores (unequal class weights).
    front : SparseProjection, Densify or None
        What makes dense rows of sparse ones; the scaler and the network come after it.
    linear : Discriminants, SparseLines or None
        The linear part that is added to each member's score.
    sums : SideSums
        What the representatives are made from.
    levels, spreads : float64 arrays of shape (n_stacked,)
        Put the members on one scale: a head's score is ``(score - level) / spread``.
    chosen : bool array of shape (n_members,)
        The members that speak: all, but for those that judge forward in time, and in what `only`
        returns.
    """

    network: SetConvNetwork
    scaler: Scaler
    anchors: NDArray[np.float64]
    n_classes: int
    offset: list[float]
    front: SparseFront | None
    linear: LinearPart | None
    sums: SideSums
    levels: NDArray[np.float64]
    spreads: NDArray[np.float64]
    chosen: NDArray[np.bool_]

    @classmethod
    def make(
        cls, network: SetConvNetwork, anchors: NDArray[np.float64], **others: Any
    ) -> SetConvModel:
        """Return a model that has seen no rows yet, its members on the scales that they have.

        ``others`` are the attributes that these two do not decide.
        """
        return cls(
            network=network,
            anchors=anchors,
            sums=SideSums.empty(network.n_stacked, network.setconv.out_features * len(anchors[0])),
            levels=np.zeros(network.n_stacked),
            spreads=np.ones(network.n_stacked),
            **others,
        )

    def describe(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the model as plain data and arrays, of which `restore` makes it again."""
        parts: dict[str, Part | None] = {
            **{f"views/{number}": view for number, view in enumerate(self.scaler.views)},
            "front": self.front,
            "linear": self.linear,
        }
        there = {place: part for place, part in parts.items() if part is not None}
        config = {
            "n_classes": self.n_classes,
            "n_features": self.n_features,
            "offset": self.offset,
            "network": self.network.spec,
            "parts": {place: part.kind for place, part in there.items()},
        }
        weights = {f"network/{name}": t for name, t in self.network.state_dict().items()}
        weights |= {"sums/total": self.sums.total, "sums/weight": self.sums.weight}
        arrays = {
            **{name: getattr(self, name) for name in _ARRAYS},
            **{name: tensor.detach().cpu().numpy() for name, tensor in weights.items()},
        }
        for place, part in there.items():
            arrays |= {f"{place}/{name}": array for name, array in part.arrays().items()}
        return config, arrays

    @classmethod
    def restore(
        cls, config: Mapping[str, Any], arrays: Mapping[str, Array], device: torch.device
    ) -> SetConvModel:
        """Return what `describe` described; a ValueError says which parts do not fit together."""
        spec = config["network"]
        weights = {n: torch.from_numpy(one) for n, one in under("network/", arrays).items()}
        shares = [spec[name] for name in ("dropout", "input_dropout")]
        if len(spec["encoder"]) > len(weights) or not all(0 <= one < 1 for one in shares):
            raise ValueError("wrong: network")
        with torch.device("meta"):  # nothing is allocated for shapes that the weights do not have
            shapes = {n: one.shape for n, one in SetConvNetwork(**spec).state_dict().items()}
        if shapes != {name: one.shape for name, one in weights.items()}:
            raise ValueError("wrong: shapes of the network")
        network = SetConvNetwork(**spec)
        network.load_state_dict(weights)
        kinds = VIEWS | FRONTS | LINEAR_PARTS
        parts: dict[str, Any] = {
            place: kinds[kind].restore(under(f"{place}/", arrays))
            for place, kind in config["parts"].items()
        }
        model = cls(
            network=network.to(device),
            scaler=Scaler(tuple(one for place, one in parts.items() if place.startswith("views/"))),
            n_classes=config["n_classes"],
            offset=config["offset"],
            front=parts.get("front"),
            linear=parts.get("linear"),
            sums=SideSums(*(torch.from_numpy(arrays[f"sums/{n}"]) for n in ("total", "weight"))),
            **{name: arrays[name] for name in _ARRAYS},
        )
        model._check_shapes(config["n_features"])
        return model

    def _check_shapes(self, n_features: int) -> None:
        """Refuse parts that would only be noticed, or not noticed at all, in a prediction."""
        network, heads = self.network, count_heads(self.n_classes)
        stacked, n_inputs = network.n_stacked, network.spec["in_features"]
        width = n_features if self.front is None else self.front.width
        right = {
            "n_features": self.scaler.width(width) == n_inputs,
            "heads": network.n_heads == heads,
            "offset": np.shape(self.offset) == (heads,),
            "anchors": self.anchors.ndim == 3 and self.anchors.shape[::2] == (stacked, width),
            "views": self.scaler.fits(width),
            "front": self.front is None or self.front.fits(n_features),
            "chosen": self.chosen.shape == (network.n_members,) and bool(self.chosen.any()),
            "levels": self.levels.shape == self.spreads.shape == (stacked,),
            "spreads": bool((self.spreads > 0).all()),
            "linear": self.linear is None or self.linear.fits(stacked, n_features, n_inputs),
        }
        if right["anchors"]:
            size = network.setconv.out_features * self.anchors.shape[1]
            right["sums"] = self.sums.total.shape == (stacked, 2, size)
            right["sums"] &= self.sums.weight.shape == (stacked, 2)
            right["sums"] &= bool((self.sums.weight > 0).all())
        if not all(right.values()):
            raise ValueError(f"wrong: {', '.join(name for name, ok in right.items() if not ok)}")

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.network.parameters()).device

    @property
    def n_features(self) -> int:
        """Number of columns of the rows that come in."""
        return int(self.anchors.shape[-1]) if self.front is None else self.front.n_features

    def only(self, members: NDArray[np.bool_]) -> SetConvModel:
        """Return the model as some of its members see it, such as those that left a row out."""
        return replace(self, chosen=members)

    def scaled_anchors(self) -> Tensor:
        """Return the anchors as the network sees them, (n_stacked, n_anchors, n_inputs)."""
        stacked, count, width = self.anchors.shape
        views = self.scaler(self.anchors.reshape(-1, width))
        scaled = views.reshape(len(views), stacked, count, -1)
        view = np.arange(stacked) // self.network.n_heads % len(views)
        return torch.from_numpy(scaled[view, np.arange(stacked)]).to(self.device)

    @property
    def representatives(self) -> Tensor:
        """What queries are compared with, shape (n_stacked, 2, features)."""
        return self.sums.representatives(self.network)

    def without_rows(self) -> SetConvModel:
        """Return the model with no rows seen, for instance after the weights have changed."""
        return replace(self, sums=SideSums.empty(*self.sums.total.shape[::2]))

    def with_rows(
        self,
        rows: Features,
        codes: NDArray[Any],
        weights: NDArray[Any],
        left_out_of: Callable[[slice], NDArray[np.bool_]] | None = None,
    ) -> SetConvModel:
        """Return the model after rows took part in the representatives: exact in their means.

        All of them but for those that a member leaves out: ``left_out_of`` says of a slice of the
        rows which these are, bool (n_members, n_rows).
        """
        network = self.network
        sums = BlockSums(lambda: SideSums.empty(*self.sums.total.shape[::2]))
        for block in self._embed(rows):
            part, n_rows = block.numbers, block.rows.shape[0]
            sides = np.tile(head_sides(codes[part], self.n_classes), (network.n_members, 1))
            if left_out_of is not None:
                sides[np.repeat(left_out_of(part), network.n_heads, axis=0)] = ABSENT
            here = torch.tensor(weights[part], dtype=torch.float64)
            sums.add(part, block.embedded[:, :n_rows], torch.from_numpy(sides), here)
        added = sums.total()
        added.merge(self.sums)
        return replace(self, sums=added)

    def scores(self, rows: Features, first: int = 0) -> NDArray[np.float64]:
        """Return the log-odds of side 1 of each head, averaged over members, (n_rows, heads).

        ``first`` is the number of the first row, for error messages.
        """
        return self.average(self.member_scores(rows, first))

    def member_scores(self, rows: Features, first: int = 0) -> NDArray[np.float64]:
        """Return the scores of every head of every member as they are, (n_rows, n_stacked)."""
        network, linear = self._score_parts(rows)
        scores = network if linear is None else network + linear
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
            raise DataError(
                f"Row {first + row} of X has values so large that its score is not finite: rescale "
                'the columns, or fit with scaling="auto".',
                row=first + row,
            )
        return scores

    def average(
        self, raw: NDArray[np.float64], weights: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """Average the members' scores (n_rows, n_stacked) on one scale; (n_rows, heads).

        With ``weights`` (n_members, n_rows) only the members that are marked for a row count, by
        default those that speak.
        """
        shape = (len(raw), self.network.n_members, self.network.n_heads)
        aligned = ((raw - self.levels) / self.spreads).reshape(shape)
        if weights is None:
            weights = np.repeat(self.chosen[:, None], len(raw), axis=1)
        marks = weights.astype(np.float64)
        total = np.zeros((len(raw), shape[2]))
        for member, mark in enumerate(marks):
            # One after the other: numpy's own sums depend on how many rows there are.
            total += aligned[:, member] * mark[:, None]
        return np.asarray(total / marks.sum(axis=0)[:, None] + np.asarray(self.offset))

    def aligned(
        self,
        raw: NDArray[np.float64],
        counted: NDArray[np.bool_] | None = None,
        weights: NDArray[np.float64] | None = None,
    ) -> SetConvModel:
        """Return the model with its members on one scale, that of their average.

        Parameters
        ----------
        raw : array of shape (n_rows, n_stacked)
            `member_scores` of the same rows before any alignment.
        counted : bool array of shape (n_members, n_rows), optional
            The rows that each member is aligned on; None: all.
        weights : float array of shape (n_rows,), optional
            How many rows each stands for; None: for itself.
        """
        heads = self.network.n_heads
        if counted is None and weights is None:
            level, spread = raw.mean(axis=0), raw.std(axis=0)
        else:
            own = np.ones((len(self.chosen), len(raw)), dtype=np.bool_)
            if counted is not None:
                own = np.where(counted.sum(axis=1, keepdims=True) > 1, counted, True)
            parts = [
                _mean_and_spread(column[mine], None if weights is None else weights[mine])
                for column, mine in zip(raw.T, np.repeat(own, heads, axis=0), strict=True)
            ]
            level, spread = np.array(parts).T
        level, spread = level.reshape(-1, heads), spread.reshape(-1, heads)
        common = spread.mean(axis=0)
        usable = (spread > 0) & (common > 0)
        relative = np.where(usable, spread / np.where(common > 0, common, 1), 1)
        levels = (level - level.mean(axis=0) * relative).ravel()
        return replace(self, levels=levels, spreads=relative.ravel())

    def with_linear_share(
        self, rows: Matrix, share: float, counted: NDArray[np.bool_]
    ) -> SetConvModel:
        """Return the model whose linear scores have a share in the spread of a member's scores.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)
        share : float
        counted : bool array of shape (n_members, n_rows)
            The rows by which a member is judged.
        """
        network, linear = self._score_parts(rows)
        if self.linear is None or linear is None:
            return self
        factors = np.zeros(self.network.n_stacked)
        for place in range(len(factors)):
            mine = counted[place // self.network.n_heads]
            spread = linear[mine, place].std()
            if spread > 0:
                factors[place] = share / (1 - share) * (network[mine, place].std() or 1.0) / spread
        return replace(self, linear=self.linear.scaled(factors))

    def embed(self, rows: Matrix) -> NDArray[np.float32]:
        """Return each row's embedding as it is compared, shape (n_rows, n_stacked, features).

        Only the members that speak are among the stacked.
        """
        stacked = np.repeat(self.chosen, self.network.n_heads)
        parts = [
            self.network.finish(block.embedded).transpose(0, 1).cpu().numpy()[:, stacked]
            for block in self._embed(rows)
        ]
        return np.concatenate(parts)[: rows.shape[0]]

    def _score_parts(
        self, rows: Features
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Return the scores by the network, and by the linear part if there is one."""
        sides = self.representatives
        difference = ((sides[:, 1] - sides[:, 0]) * self.network.scale()).detach().unsqueeze(1)
        # Small arrays that are kept between large ones would fragment the heap. Columns lie as the
        # parts give them: sums over rows depend on it in the last bits.
        network = np.empty((rows.shape[0], self.network.n_stacked), order="F")
        linear = None
        for block in self._embed(rows):
            here, size = block.numbers, block.rows.shape[0]
            scores = (self.network.finish(block.embedded) * difference).sum(dim=-1).T
            network[here] = scores[:size].cpu().numpy()
            if self.linear is not None:
                found = self.linear(block.rows, block.views, self.network.n_members)
                if linear is None:
                    linear = np.empty(network.shape, order="C" if found.flags.c_contiguous else "F")
                linear[here] = found[:size]
        return network, linear

    def _embed(self, rows: Features) -> Iterator[_Block]:
        """Yield the rows block by block, with their embeddings.

        Only the last block is padded, so what is made of the padding is cut off at the very end:
        every product, the output layer's too, then has one shape.
        """
        wide = issparse(rows) and self.anchors.shape[-1] > NARROW
        batch = BLOCK if wide else BATCH  # wide ones are made dense
        with torch.inference_mode():
            embed = self.network.prepare(self.scaled_anchors())
            encode = self.network.ready_encoder()
            for part, read in row_blocks(rows, batch):
                views = torch.from_numpy(self.scaler(self._dense(read)))
                for inner in gen_batches(read.shape[0], BLOCK):
                    here = slice(part.start + inner.start, part.start + inner.stop)
                    padding = BLOCK - (inner.stop - inner.start)
                    seen = views[:, inner].to(self.device)
                    seen = functional.pad(seen, (0, 0, 0, padding)) if padding else seen
                    embedded = embed(encode(self._to_members(seen)))
                    yield _Block(here, read[inner], seen, embedded)

    def _dense(self, rows: Any) -> Array:
        """Return the rows as the scaler takes them."""
        if self.front is not None:
            return self.front(csr_matrix(rows))
        dense: Array = rows.toarray() if issparse(rows) else rows
        return dense

    def _to_members(self, views: Tensor) -> Tensor:
        """Hand each member, or separate head, its view; (n, d) if all have the same."""
        if len(views) == 1:
            return views[0]
        network = self.network
        encoder = torch.arange(network.n_encoders, device=views.device)
        member = encoder // (network.n_encoders // network.n_members)
        return views[member % len(views)]


def under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays of one part of a model, by their names without the prefix."""
    return {k.removeprefix(prefix): one for k, one in arrays.items() if k.startswith(prefix)}


@dataclass
class SideSums:
    """Running sums of the rows' embeddings on the two sides of each head.

    A set's representation is the mean of its rows' embeddings, so sums and weights are all that
    has to be kept: parts can be merged and new rows added exactly, in any order. Sums are kept in
    float64 on the CPU.

    Attributes
    ----------
    total : float64 Tensor of shape (heads, 2, features)
    weight : float64 Tensor of shape (heads, 2)
    """

    total: Tensor
    weight: Tensor

    @classmethod
    def empty(cls, heads: int, features: int) -> SideSums:
        """Return sums over no rows."""
        return cls(
            torch.zeros(heads, 2, features, dtype=torch.float64),
            torch.zeros(heads, 2, dtype=torch.float64),
        )

    def add(self, embedded: Tensor, sides: Tensor, weights: Tensor) -> None:
        """Add rows: embedded (heads, n, features), sides (heads, n), weights (n,)."""
        member = torch.stack([sides == 0, sides == 1], dim=1).double() * weights
        self.total += member @ embedded.cpu().double()
        self.weight += member.sum(dim=-1)

    def merge(self, other: SideSums) -> None:
        """Add the sums over other rows."""
        self.total += other.total
        self.weight += other.weight

    def representatives(self, network: SetConvNetwork) -> Tensor:
        """Return what queries are compared with: float32, shape (heads, 2, features)."""
        mean = (self.total / self.weight.unsqueeze(-1)).float()
        device = next(network.parameters()).device
        with torch.no_grad():
            return network.finish(mean.to(device))


MOST_ANCHOR_ROWS = 20_000  # of a head, that k-means and callables look at


class AnchorRows:
    """The rows that anchors are made from: those of the smaller side of each head of each member.

    Means are made in a pass over all rows, by `add`. Other anchors are made of the rows in
    `chosen`, drawn where a side has more than it takes.

    Parameters
    ----------
    anchor : {"mean", "subset", "kmeans"}, callable or array
        A function from the rows of the smaller side to one anchor (d,) or several (k, d); or the
        anchors themselves: (d,) or (k, d) for all heads, (heads, k, d), or one for each head of
        each member, as saved.
    split : Split
    weights : array of shape (n_rows,)
    n_classes, n_features : int
    seed : int

    Attributes
    ----------
    chosen : list of int arrays
        For each head of each member, rows by number; empty where a pass makes the anchors.
    from_sums : bool
        Whether they are means, for which a pass over all rows is needed.
    """

    def __init__(
        self,
        anchor: Anchor,
        split: Split,
        weights: NDArray[Any],
        n_classes: int,
        n_features: int,
        seed: int,
    ) -> None:
        self._anchor, self._split, self._weights = anchor, split, weights
        self._heads, self._width = count_heads(n_classes), n_features
        self._rng = np.random.default_rng(seed)
        self.chosen: list[NDArray[np.int64]] = []
        self.from_sums = isinstance(anchor, str) and anchor == "mean"
        if isinstance(anchor, str) and anchor not in ("mean", *_RULES):
            raise ParameterError(
                f"anchor={anchor!r}: choose 'mean', {', '.join(map(repr, _RULES))}, a callable or "
                "an array.",
                parameter="anchor",
            )
        if not (isinstance(anchor, str) or callable(anchor)):
            return
        # The side that has fewer rows, and side 1 where both are equal.
        heads = head_sides(split.classes, n_classes)
        sides = np.concatenate([np.where(out, ABSENT, heads) for out in split.left_out])
        zeros, ones = ((sides == side) @ split.counts for side in (0, 1))
        self._smaller = sides == (ones <= zeros)[:, None]
        if self.from_sums:
            needed = self._smaller.any(axis=0)
            self._sums = BlockSums(lambda: _KindSums(needed, n_features))
        else:
            self.chosen = [self._choose(some, number) for number, some in enumerate(self._smaller)]

    def _choose(self, some: NDArray[np.bool_], number: int) -> NDArray[np.int64]:
        if self._anchor == "subset":
            return self._split.draw(some, SUBSET, self._rng)
        rng = np.random.default_rng([MOST_ANCHOR_ROWS, number])
        return np.sort(self._split.draw(some, MOST_ANCHOR_ROWS, rng))

    def add(self, part: slice, rows: Any) -> None:
        """Look at rows, which have these numbers."""
        self._sums.add(part, rows, self._split.kinds[part], self._weights[part])

    def anchors(self, rows: Matrix) -> NDArray[np.float64]:
        """Return the anchors, (n_stacked, n_anchors, d); ``rows`` has those of `chosen`.

        Where heads came to different numbers of anchors, the fewer are repeated in turn.
        """
        stacked = len(self._split.left_out) * self._heads
        if self.from_sums:
            sums = self._sums.total()
            means = [sums.total[one].sum(axis=0) / sums.mass[one].sum() for one in self._smaller]
            made = [_as_anchors(mean, self._width, (1,))[0] for mean in means]
        elif isinstance(self._anchor, str) or callable(self._anchor):
            made = [self._make(rows[one], self._weights[one]) for one in self.chosen]
        else:
            given = _as_anchors(self._anchor, self._width, (1, stacked, self._heads))
            made = [given[number % len(given)] for number in range(stacked)]
        of_members = [_alike(made[at : at + self._heads]) for at in range(0, stacked, self._heads)]
        return _alike([one for member in of_members for one in member])

    def _make(self, rows: Any, weights: Array) -> NDArray[np.float64]:
        rule: Any = self._anchor
        picked = rule(rows) if callable(rule) else _RULES[rule](rows, weights, self._rng)
        made: NDArray[np.float64] = _as_anchors(picked, self._width, (1,))[0]
        return made


def _alike(made: Sequence[Array]) -> NDArray[np.float64]:
    """Return sets of anchors as one array, the smaller sets repeated in turn."""
    most = max(map(len, made))
    return np.asarray(np.stack([one[np.arange(most) % len(one)] for one in made]))


class _KindSums:
    """Weighted sums of the rows of each kind that is needed."""

    def __init__(self, needed: NDArray[np.bool_], width: int) -> None:
        self._needed = np.flatnonzero(needed)
        self.total, self.mass = np.zeros((len(needed), width)), np.zeros(len(needed))

    def add(self, rows: Any, kinds: NDArray[Any], weights: NDArray[Any]) -> None:
        for kind in np.intersect1d(kinds, self._needed):
            own = np.flatnonzero(kinds == kind)
            self.total[kind] += weights[own] @ rows[own].astype(np.float64)
            self.mass[kind] += weights[own].sum()

    def merge(self, other: _KindSums) -> None:
        self.total += other.total
        self.mass += other.mass


def _mean(rows: Any, weights: Array, rng: np.random.Generator) -> Array:  # noqa: ARG001 (the rules')
    return np.asarray(weights @ rows.astype(np.float64) / weights.sum())


def _centroids(rows: Array, weights: Array, rng: np.random.Generator) -> Array:
    """Return the centroids of the rows, no more than there are distinct rows."""
    from sklearn.cluster import KMeans  # half of what importing setconv would take

    k = min(CENTROIDS, rows.shape[0] if issparse(rows) else len(np.unique(rows, axis=0)))
    model = KMeans(k, n_init=3, random_state=int(rng.integers(2**31)))
    centers: Array = model.fit(rows, sample_weight=weights).cluster_centers_
    return centers


_RULES = {"subset": _mean, "kmeans": _centroids}


def _mean_and_spread(scores: Array, weights: Array | None) -> tuple[float, float]:
    mean = np.average(scores, weights=weights)
    return float(mean), float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))


def _as_anchors(values: Any, width: int, heads: tuple[int, ...]) -> NDArray[np.float64]:
    """Return one anchor (d,), several (k, d), or several a head (heads, k, d), with all axes."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise ParameterError(f"anchor must be numbers: {error}", parameter="anchor") from error
    whole = array.reshape((1,) * (3 - array.ndim) + array.shape)
    if whole.ndim != 3 or not whole.size or whole.shape[2] != width or len(whole) not in heads:
        raise ParameterError(
            f"anchor has shape {array.shape}: with {width} features give ({width},), (k, {width}) "
            f"or ({heads[-1]}, k, {width}).",
            parameter="anchor",
        )
    if not np.isfinite(array).all():
        raise ParameterError(
            "anchor contains NaN or infinity: give finite numbers.", parameter="anchor"
        )
    return whole
