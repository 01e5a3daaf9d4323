"""Whatever is given as rows, labels or a file: an own error, or right answers and nothing moved."""

import copy
import datetime
import decimal
import gzip
import io
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from harness import damaged, pick, soak
from scipy import sparse
from small_models import make_rows, small

from setconv import metrics
from setconv.errors import SetConvError
from setconv.experiment.study import read_studies
from setconv.io import FeatureEncoder, open_records, open_source, read_batches
from setconv.pipelines import SetConvTableClassifier, SetConvTextClassifier

NAMES = list("abcdef")
VALUES = [
    *(None, "", "x", "1.5", "nan", "\0", "\ud800", "9" * 400, "1e999", "2024-01-31", "\u202e"),
    *(0, -1, True, 2**63, 2**64, 2**70, 10**400, -(10**400), 1.5, -0.0, 5e-324, 1e-300, 1e300),
    *(float("nan"), float("inf"), -float("inf"), 1j, b"3", b"\xff", len, object(), {1}, {}, []),
    *(
        [1, 2],
        [None],
        {"a": 1},
        (1, 2),
        range(3),
        np.ones(2),
        np.float16(7),
        np.longdouble("1e999"),
    ),
    *(
        np.datetime64("2020"),
        np.datetime64("NaT"),
        np.timedelta64(3, "D"),
        np.str_("x"),
        np.bool_(1),
    ),
    *(pd.NA, pd.NaT, pd.Timestamp("2020"), pd.Timestamp("2020", tz="UTC"), pd.Timedelta(1)),
    *(datetime.date(1, 1, 1), datetime.time(1), datetime.timedelta(3), datetime.datetime.max),
    *(decimal.Decimal("1.5"), decimal.Decimal("sNaN"), torch.ones(1), torch.ones(2), "x" * 20_000),
]
# The same numbers in another dress: equal to the bit.
DRESSES = [
    np.asfortranarray,
    lambda X: X.astype(">f8"),
    lambda X: X.astype(np.longdouble),
    lambda X: X.astype(object),
    lambda X: X.astype(str),
    lambda X: np.ma.masked_array(X),
    lambda X: np.repeat(X, 2, axis=0)[::2],
    lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),  # read-only
    lambda X: X.tolist(),
    lambda X: tuple(map(tuple, X)),
    lambda X: list(X),
    lambda X: memoryview(X.copy()),
    torch.from_numpy,
    sparse.csr_matrix,
    sparse.csc_array,
    sparse.coo_matrix,
    sparse.lil_matrix,
    lambda X: pd.DataFrame(X),
    lambda X: pd.DataFrame(X).astype("Float64"),
    lambda X: pd.DataFrame(X).astype("float64[pyarrow]"),
    lambda X: pd.DataFrame(X, index=pd.MultiIndex.from_arrays([range(len(X))] * 2)),
    lambda X: pd.DataFrame(X, columns=pd.MultiIndex.from_product([["a", "b"], range(3)])),
]
NAMED = [
    lambda X: pd.DataFrame(X, columns=NAMES).astype(object),
    lambda X: pl.DataFrame(X, schema=NAMES),
    lambda X: pl.LazyFrame(X, schema=NAMES),
    lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
    lambda X: pa.Table.from_batches(pa.table(dict(zip(NAMES, X.T, strict=True))).to_batches(7)),
]
# What holds other rows, or none.
WRONG_ROWS = [
    lambda X: X[:0],
    lambda X: X[:, :0],
    lambda X: X[:, :3],
    lambda X: X[:, 0],
    lambda X: X[None],
    lambda _: np.array(1.0),
    lambda X: X.astype(complex),
    lambda X: X.astype("M8[s]"),
    lambda X: X.astype("m8[ms]"),
    lambda X: X.astype("V8"),
    lambda X: np.zeros(len(X), [("a", float), ("b", int)]),
    lambda X: np.ma.masked_array(X, X.max() - 0.01 < X),
    lambda X: X.astype(np.longdouble) * np.longdouble("1e4000"),
    lambda X: X * 1e200,
    lambda X: np.where(X > 1, np.nan, X),
    lambda X: sparse.csr_matrix(np.where(X > 1, np.inf, X)),
    lambda X: sparse.csr_matrix(X.astype(complex)),
    lambda X: sparse.coo_array(X[0]),
    lambda X: sparse.csr_matrix(X.shape),
    lambda X: pd.DataFrame(X, columns=list("aabcde")),
    lambda X: pd.DataFrame(X, columns=["a", 1, 2, 3, 4, 5]),
    lambda X: pd.DataFrame(X, columns=NAMES[::-1]),
    lambda X: pd.DataFrame(X, columns=NAMES).assign(a=pd.array([True, None] * 60, "boolean")),
    lambda X: pd.DataFrame(X, columns=NAMES).assign(a=pd.array(["1", None] * 60, "string")),
    lambda X: pd.DataFrame(X, columns=NAMES).assign(a=pd.Categorical(["x", "y"] * 60)),
    lambda X: pd.DataFrame(X, columns=NAMES).assign(a=pd.Timestamp("2020")),
    lambda X: pd.Series(X[:, 0]),
    lambda X: pl.DataFrame(X, schema=NAMES).with_columns(a=pl.Series([1, None] * 60)),
    lambda X: pl.DataFrame(X, schema=NAMES).with_columns(a=pl.Series([[1.0]] * 120)),
    lambda X: pl.DataFrame(X, schema=NAMES).with_columns(a=pl.Series([{"x": 1}] * 120)),
    lambda X: pl.DataFrame(X, schema=NAMES).with_columns(a=pl.Series(["x", "y"] * 60)),
    lambda X: pl.DataFrame(X, schema=NAMES).with_columns(
        a=pl.Series([2**100] * 120, dtype=pl.Int128)
    ),
    lambda _: pl.scan_parquet("/nowhere/at/all.parquet"),
    lambda X: pa.table({"a": pa.array([1, None] * 60), "b": X[:, 0]}),
    lambda X: pa.table({"a": pa.array([[1.0], [1.0, 2.0]] * 60), "b": X[:, 0]}),
    lambda X: pa.array(X[:, 0]),
    lambda X: (row for row in X),
    lambda X: dict(enumerate(X)),
    lambda X: torch.from_numpy(X).requires_grad_(),
    lambda X: torch.from_numpy(X).to_sparse(),
    lambda _: "a\0b",
    lambda _: "x" * 5000,
    lambda _: "\ud800",
]
METHODS = ["predict", "predict_proba", "decision_function", "transform"]
METRICS = [name for name in metrics.__all__ if name[0].islower() and name != "scorers"]
YAML = [
    "a: &a [*a]",
    "&a {data: *a}",
    "x: &x [1]\n"
    + "".join(f"{c}: &{c} [{f'*{b}, ' * 9}]\n" for b, c in zip("xabcd", "abcde", strict=True)),
    "[" * 100_000,
    "{a: " * 3000,
    "".join(" " * n + "a:\n" for n in range(500)),
    "seed: " + "9" * 5000,
    "timeout: " + "9" * 400,
    "name: 2020-13-45",
    "studies: [case.yaml]",
    "data: [[1]]\nmethods: [a]",
    "data: [{a: 1}]\nmethods: [a]",
    "? [1]\n: 2",
    "!!python/object:os.system ls",
    "!!binary x",
    'name: "\\ud800"\ndata: {a: digits}\nmethods: [x]',
    "a\0b",
    "x: " + "a" * 1_000_000,
    "data: {a: digits}\nmethods: [x]\nsplit: {parts: 70/x}",
    "data: {a: {load: digits, sweep: {ratios: [0, .nan]}}}\nmethods: [x]",
]
LINES = [
    '{"\\ud800": 1}',
    '{"a": "\\ud800"}',
    '{"a": {"\\udfff": ["\\ud800"]}}',
    '{"\\ud800": 1, "\\udfff": 2}',
    '{"a": ' + "9" * 400 + "}",
    '{"a": ' + "9" * 5000 + "}",
    '{"a": [1, ' + "9" * 30 + "]}",
    '{"a": 9223372036854775807}\n{"a": 0.5}',
    '{"a": NaN, "b": Infinity, "c": 1e999}',
    '{"": 1}',
    '{"a": "\\u0000", "\\u0000": 2}',
    '{"a": [], "b": [null], "c": [[1]], "d": [true]}',
    "null",
    "[1]",
    "{}",
    '{"a": 1',
]
HEADERS = [
    "a,a\n1,2\n",
    ",b\n1,2\n",
    'a,b\n"1,2\n',
    'a,b\n"1"x,2\n',
    "a,b\n1\n",
    "a,b\n1,2,3\n",
    "a\n\0\n",
]
HEADERS += [
    "",
    "\n\n",
    "a,b",
    "a;b\n1,2\n",
    "a\r1\r2",
    '"' * 999,
    "x" * 100_000 + "\n1\n",
    "sep=;\na;b\n1;2\n",
]
ENCODINGS = [
    None,
    "utf-8",
    "latin-1",
    "utf-16",
    "utf-7",
    "cp037",
    "hex",
    "nope",
    "a\0",
    "\ud800",
    3,
]


class Rows:
    def __init__(self, folder):
        self.folder = folder
        self.X, self.y = make_rows(120, features=6, minority=0.3)
        self.words = np.array(["common", "rare"])[self.y]
        self.model = self.fit()
        self.named = self.fit(pd.DataFrame(self.X, columns=NAMES))
        three = make_rows(120, classes=3, features=6, minority=0.5)
        self.three = small(n_members=2, max_steps=2).fit(*three)
        self.said = self.model.predict_proba(self.X)
        self.table = {
            "number": self.X[:, 0].tolist(),
            "kind": np.array(["x", "y", "z"])[np.arange(120) % 3].tolist(),
            "flag": (self.X[:, 1] > 0).tolist(),
            "day": [f"2020-01-{1 + n % 28:02}" for n in range(120)],
            "list": self.X[:, 2:4].tolist(),
        }
        self.of_tables = SetConvTableClassifier(classifier=self.tiny()).fit(self.table, self.y)
        self.texts = [
            f"{'fire at' if one else 'walk to'} house {n % 9}" for n, one in enumerate(self.y)
        ]
        self.of_texts = SetConvTextClassifier("tfidf", self.tiny()).fit(self.texts, self.words)
        flat = pa.table(
            {name: one for name, one in self.table.items() if name != "list"} | {"y": self.y}
        )
        self.flat, self.files = flat, self.write(flat)

    @staticmethod
    def tiny(**parameters):
        return small(n_members=2, max_steps=2, **parameters)

    def fit(self, X=None, y=None, **more):
        return self.tiny().fit(self.X if X is None else X, self.y if y is None else y, **more)

    @staticmethod
    def write(table):
        rows, names = table.to_pylist(), table.column_names
        lines = [",".join(names), *(",".join(map(str, row.values())) for row in rows)]
        parquet = io.BytesIO()
        pq.write_table(table, parquet)
        return {
            "csv": "\n".join(lines).encode(),
            "tsv": "\n".join(lines).replace(",", "\t").encode(),
            "jsonl": "\n".join(map(json.dumps, rows)).encode(),
            "parquet": parquet.getvalue(),
        }

    def case(self, rng):
        kinds = [self.dress, self.cell, self.cell, self.rows, self.labels, self.beside, self.beside]
        kinds += [
            self.decision,
            self.figures,
            self.figures,
            self.cells_of_tables,
            self.words_of_texts,
        ]
        kinds += [self.file, self.file, self.opened, self.study]
        return pick(rng, kinds)(rng)

    # ------------------------------------------------------------------------------------ checks

    @staticmethod
    def right(model, X, n_rows, classes=None):
        """Predict, and check all that can be checked of the answers."""
        found = model.predictions(X)
        assert found.probabilities.shape == (n_rows, len(model.classes_))
        assert np.isfinite(found.probabilities).all()
        assert np.allclose(found.probabilities.sum(axis=1), 1)
        assert np.isfinite(found.scores).all()
        assert np.isfinite(found.decision_values).all()
        assert len(found.labels) == n_rows
        assert set(found.labels.tolist()) <= set(model.classes_.tolist())
        if classes is not None:
            assert set(model.classes_.tolist()) <= set(classes)
        return found

    def changed(self, model, change):
        """Do something to a copy; after an error it is as it was, else it gives right answers."""
        model = copy.deepcopy(model)
        before = model.predict_proba(self.X)
        try:
            change(model)
        except SetConvError:
            assert np.array_equal(model.predict_proba(self.X), before)
            raise
        self.right(model, self.X, len(self.X))

    # -------------------------------------------------------------------------------------- rows

    def dress(self, rng):
        number = int(rng.integers(len(DRESSES) + len(NAMED)))
        named = number >= len(DRESSES)
        model, dress = self.named if named else self.model, (DRESSES + NAMED)[number]

        def act():
            try:
                found = model.predict_proba(dress(self.X))
                fitted = self.fit(dress(self.X)) if rng.random() < 0.5 else None
            except SetConvError as error:
                raise AssertionError("refused") from error
            assert np.array_equal(found, self.said)
            if fitted is not None and not isinstance(
                dress(self.X[:2]), sparse.sparray | sparse.spmatrix
            ):
                assert np.array_equal(fitted.predict_proba(dress(self.X)), self.said)

        return f"dress {number}", act

    def cell(self, rng):
        number = int(rng.integers(len(VALUES)))
        row, column = int(rng.integers(120)), int(rng.integers(6))
        form = pick(rng, ["array", "list", "pandas", "polars"])
        how = pick(rng, [*METHODS, "fit", "fit", "partial_fit", "post_train"])

        def act():
            rows = np.empty(self.X.shape, dtype=object)
            rows[:] = self.X
            rows[row, column] = VALUES[number]
            X = (
                rows.tolist()
                if form == "list"
                else pd.DataFrame(rows)
                if form == "pandas"
                else rows
            )
            if form == "polars":
                try:
                    X = pl.DataFrame(rows.tolist(), schema=NAMES, orient="row", strict=False)
                except BaseException:  # polars refuses it, or panics
                    return
            self.use(X, how, self.named if form == "polars" else self.model)

        return f"{VALUES[number]!r:.40} in row {row}, column {column}, {form}, {how}", act

    def use(self, X, how, model):
        if how == "fit":
            self.right(self.fit(X), self.X, len(self.X), {0, 1})
        elif how in METHODS:
            found = getattr(model, how)(X)
            assert len(found) > 0
            if found.dtype.kind == "f":
                assert np.isfinite(found).all()
        else:
            self.changed(model, lambda one: getattr(one, how)(X, self.y))

    def rows(self, rng):
        number, how = (
            int(rng.integers(len(WRONG_ROWS))),
            pick(rng, [*METHODS, "fit", "partial_fit", "post_train"]),
        )
        model = pick(rng, [self.model, self.named])

        def act():
            X = WRONG_ROWS[number](self.X)
            if how == "fit":
                self.right(self.fit(X), X, len(self.X), {0, 1})
            else:
                self.use(X, how, model)

        return f"rows {number}, {how}", act

    # ---------------------------------------------------------------------------- what comes with

    def hostile_column(self, rng, good):
        """A column of which some values, the type or the length is wrong."""
        values, bad = list(good), VALUES[int(rng.integers(len(VALUES)))]
        kind = pick(rng, ["one", "one", "some", "all", "value", "short", "nested", "type", "type"])
        if kind == "one":
            values[int(rng.integers(len(values)))] = bad
        elif kind == "some":
            values = [bad if rng.random() < 0.5 else one for one in values]
        elif kind == "all":
            values = [bad] * len(values)
        elif kind == "value":
            return f"{bad!r:.40}", bad
        elif kind == "short":
            values = values[: int(rng.integers(len(values)))]
        elif kind == "nested":
            values = [[one] * int(rng.integers(1, 3)) for one in values]
        form = pick(rng, ["list", "tuple", "object", "pandas", "typed"])
        made = {"list": list, "tuple": tuple, "pandas": lambda one: pd.Series(one, dtype=object)}
        if kind == "type":
            form = pick(rng, ["M8[s]", "m8[D]", complex, np.float16, "U", "S", ">i8", "u8", bool])
            return f"as {form}", np.asarray(good, dtype="i8").astype(form)
        if form in made:
            return f"{kind} {bad!r:.40}, {form}", made[form](values)
        try:
            array = np.array(values) if form == "typed" else np.array(values, dtype=object)
        except Exception:  # numpy refuses it
            return f"{kind} {bad!r:.40}, list", values
        return f"{kind} {bad!r:.40}, {form}", array

    def labels(self, rng):
        what, y = self.hostile_column(rng, self.y.tolist())
        how = pick(rng, ["fit", "fit", "y_val", "partial_fit", "post_train", "classes"])

        def act():
            if how == "fit":
                self.right(self.fit(y=y), self.X, len(self.X))
            elif how == "y_val":
                self.right(self.fit(X_val=self.X + 0.1, y_val=y), self.X, len(self.X), {0, 1})
            elif how == "classes":
                clf = self.tiny().partial_fit(self.X, self.y, classes=y)
                assert {0, 1} <= set(clf.classes_.tolist())
            else:
                self.changed(self.model, lambda one: getattr(one, how)(self.X, y))

        return f"y is {what}, {how}", act

    def beside(self, rng):
        name = pick(rng, ["sample_weight", "groups", "time"])
        good = np.arange(120) % 40 if name == "groups" else np.arange(120)
        what, values = self.hostile_column(rng, good.tolist())
        how = "fit"
        if name == "sample_weight":
            how = pick(rng, ["fit", "partial_fit", "post_train"])
            if rng.random() < 0.5:
                sizes = [0, 1, 1e-300, 5e-324, 1e300, 1e308, 1e-100, 1e100, 1e119, 1e-119, 1e-40]
                some = rng.choice(sizes, int(rng.integers(1, 4)))
                values = rng.choice(some, 120) if rng.random() < 0.7 else some[self.y % len(some)]
                what = f"of {some}"

        def act():
            if how == "fit":
                model = small(n_members=3, max_steps=2).fit(self.X, self.y, **{name: values})
                found = self.right(model, self.X, len(self.X), {0, 1})
                assert np.isfinite(model.representatives_).all()
                assert len(found.labels) == len(self.X)
            else:
                self.changed(
                    self.model, lambda one: getattr(one, how)(self.X, self.y, sample_weight=values)
                )

        return f"{name} is {what}, {how}", act

    def decision(self, rng):
        model, bad = pick(rng, [self.model, self.three]), VALUES[int(rng.integers(len(VALUES)))]
        share = pick(rng, [0.1, 0.5, 0, 1, -1, bad])
        priors = [
            bad,
            [bad, share],
            {0: bad},
            {1: share, 0: bad},
            {"a": share},
            [share, 1 - 0.1, bad],
            share,
        ]
        objectives = [bad, {"recall": share}, {"recall": bad}, {"recall": 0.5, "class": bad}]
        objectives += [
            [[0, bad], [1, 0]],
            {"precision": 0.5, "confidence": bad},
            {"class": bad},
            [bad],
        ]
        objectives += ["f1", "recall>=0.5", f"recall>={share}", "balanced", "precision>=1e-400%"]
        name = pick(rng, ["set_prior", "set_objective"])
        value = pick(rng, priors if name == "set_prior" else objectives)
        return f"{name}({value!r:.60})", lambda: self.changed(
            model, lambda one: getattr(one, name)(value)
        )

    # ----------------------------------------------------------------------------------- metrics

    def figures(self, rng):
        name, wrong = pick(rng, METRICS), pick(rng, ["y_true", "second", "sample_weight", "more"])
        columns = {
            "y_true": self.y.tolist(),
            "second": self.y.tolist(),
            "sample_weight": [1.0] * 120,
        }
        what, bad = self.hostile_column(rng, columns["second"])
        if name == "report":
            wrong = pick(rng, [wrong, "scores", "probabilities", "classes", "positive", "groups"])

        def act():
            given = dict(columns)
            if wrong in given:
                given[wrong] = bad
            first, second = given.pop("y_true"), given.pop("second")
            if name == "minimum_of_five":
                metrics.minimum_of_five(bad)
            elif name == "report":
                given |= {wrong: bad} if wrong not in columns and wrong != "more" else {}
                found = metrics.report(first, second, confidence_intervals=True, **given)
                assert found.confusion.shape == (len(found.classes),) * 2
                for figure, (low, high) in found.intervals.items():
                    value = getattr(found, figure)
                    assert np.isnan(value) or np.isnan(low) or low <= value <= high
                    assert np.isnan(low) or -1 <= low <= high <= 1
            else:
                value = getattr(metrics, name)(first, second, **given)
                assert np.isnan(value) or -1 <= value <= 1

        return f"{name}, {wrong} is {what}", act

    # --------------------------------------------------------------------------- tables and texts

    def cells_of_tables(self, rng):
        name, fits = pick(rng, list(self.table)), rng.random() < 0.4
        size = 120 if fits else 6
        what, values = self.hostile_column(rng, self.y[:size].tolist())
        if rng.random() < 0.6:
            values = list(self.table[name][:size])
            place, bad = int(rng.integers(size)), VALUES[int(rng.integers(len(VALUES)))]
            values[place], what = bad, f"{bad!r:.40} in row {place}"
        form = pick(rng, ["dict", "pandas", "arrow"])

        def act():
            table = {one: column[:size] for one, column in self.table.items()} | {name: values}
            if form == "pandas":
                try:
                    table = pd.DataFrame(table)
                except Exception:  # pandas refuses it
                    return
            elif form == "arrow":
                try:
                    table = pa.table(table)
                except Exception:  # so does pyarrow
                    return
            if fits:
                model = SetConvTableClassifier(classifier=self.tiny()).fit(table, self.y)
                self.right(model, table, size, {0, 1})
            else:
                self.right(self.of_tables, table, size)

        return f"{name} is {what}, {form}, {'fit' if fits else 'predict'}", act

    def words_of_texts(self, rng):
        fits = rng.random() < 0.3
        what, texts = self.hostile_column(rng, self.y.tolist())
        if rng.random() < 0.6:
            texts, place = list(self.texts), int(rng.integers(120))
            bad = pick(
                rng, [*VALUES, "\ud83d\ude00", "a\0b", "\ufeff", "fire " * 200_000, "é" * 999]
            )
            texts[place], what = bad, f"{bad!r:.40} in row {place}"
        if not fits and isinstance(texts, list):
            texts = texts[:20] if rng.random() < 0.5 else texts

        def act():
            model = self.of_texts
            if fits:
                model = SetConvTextClassifier("tfidf", self.tiny()).fit(texts, self.words)
            size = len(texts) if hasattr(texts, "__len__") else None
            self.right(model, texts, size, {"common", "rare"})

        return f"texts are {what}, {'fit' if fits else 'predict'}", act

    # ------------------------------------------------------------------------------------- files

    def file(self, rng):
        kind, whole = pick(rng, list(self.files)), rng.random() < 0.25
        content, what = self.files[kind], "as it was"
        if not whole:
            what, content = self.hostile_content(rng, kind, content)
        zipped = rng.random() < 0.3
        if zipped:
            content = gzip.compress(content, mtime=0)
            if not whole and rng.random() < 0.5:
                again, content = damaged(content, rng)
                what = f"{what}, compressed, {again}"
        encoding = pick(rng, ENCODINGS) if not whole and rng.random() < 0.2 else None
        path = self.folder / f"case.{kind}{'.gz' if zipped else ''}"

        def act():
            path.write_bytes(content)
            with open_records(path, encoding=encoding) as reader:
                reader.sample(10)
                table = reader.read()
            assert table.num_columns == len(set(table.column_names))
            if kind != "parquet":
                table.validate(full=True)
            if whole:
                self.same(table, path, typed=kind in ("jsonl", "parquet"))
            encoded = FeatureEncoder().fit(table).transform(table)
            assert np.isfinite(encoded).all()

        return f"{kind}{' zipped' * zipped}: {what}, {encoding!r}", act

    @staticmethod
    def hostile_content(rng, kind, content):
        """Bytes that an accident, another program or malice wrote, with words for it."""
        how = "damaged" if kind == "parquet" else pick(rng, ["damaged", "lines", "encoding"])
        if how == "damaged":
            return damaged(content, rng)
        if how == "encoding":
            coded = pick(rng, ["utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "cp037"])
            return coded, content.decode().replace("x", "é").encode(coded)
        made = pick(rng, LINES if kind == "jsonl" else HEADERS)
        if kind == "jsonl" and rng.random() < 0.3:
            depth = int(rng.integers(1, 2000))
            made = '{"a": ' + "[" * depth + "]" * depth + "}"
        lines = content.decode().split("\n")
        lines.insert(int(rng.integers(len(lines))), made)
        return f"{made!r:.60}", pick(rng, ["\n".join(lines), made]).encode()

    def same(self, table, path, typed):
        assert table.column_names == self.flat.column_names
        assert table.num_rows == 120
        if typed:
            assert table.cast(self.flat.schema).equals(self.flat)
        with open_records(path) as reader:
            assert pa.concat_tables(reader.batches(7)).equals(table)

    def opened(self, rng):
        """Parquet files and tables of numbers, through what opens rows on disk."""
        content = self.files["parquet"]
        what = "whole"
        if rng.random() < 0.6:
            what, content = damaged(content, rng)
        names = [
            ["number"],
            ["number", "flag"],
            ["number", "number"],
            ["kind"],
            [],
            "number",
            3,
            ["no"],
            [None],
            None,
        ]
        columns, label = pick(rng, names), pick(rng, [None, "y", "kind", "no", "number", "\ud800"])
        size, path = pick(rng, [1, 7, 8192, 0, -1, 1.5, None, "x"]), self.folder / "case.parquet"

        def act():
            path.write_bytes(content)
            source = open_source(path, columns, label)
            rows = source.rows.whole()
            assert len(rows) == 120
            assert np.isfinite(rows).all()
            parts = [batch.rows for batch in read_batches(path, source.names, size)]
            assert np.array_equal(np.concatenate(parts), rows)
            if label == "y" and columns is None:
                clf = self.tiny().fit(path, "y")
                self.right(clf, path, 120)

        return f"{what}, columns {columns!r}, label {label!r}, size {size!r}", act

    def study(self, rng):
        path = self.folder / "case.yaml"
        good = "data: {a: digits, b: {load: digits, size: 100}}\n"
        good += (
            "methods: {x: {method: lda, ours: true}, y: lda}\nsplit: {parts: 70/30, repeats: 3}\n"
        )
        good += "seed: 3\nmetrics: [f1, auc]\ntimeout: 10\n"
        what, content = damaged(good.encode(), rng)
        if rng.random() < 0.6:
            made = pick(rng, YAML)
            what, content = (
                f"{made!r:.60}",
                pick(rng, [made, good + made, made + "\n" + good]).encode(),
            )

        def act():
            path.write_bytes(content)
            try:
                (study,) = read_studies(path)
            except FileNotFoundError:  # of the files that it lists
                return
            assert study.data
            assert study.methods

        return f"study: {what}", act


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(2))
def test_hostile_rows_and_files_are_refused_or_answered_rightly(part, tmp_path, cases):
    counts = soak(Rows, range(part, cases(3000), 2), tmp_path)
    assert counts["own error"]
    assert counts["right answer"]
