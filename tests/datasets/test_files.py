"""Any file with named columns as a data set."""

import numpy as np
import pandas as pd
import pytest

from setconv.datasets.files import load_file
from setconv.errors import DataError, ParameterError

TEXTS = [f"the parcel number {i} came, late and wet" for i in range(30)]
LABELS = ["good"] * 24 + ["bad"] * 6


def write(path, columns):
    """Write columns in the format that the name stands for."""
    frame = pd.DataFrame(columns)
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


# ------------------------------------------------------------------------------------------ texts


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_each_format_gives_the_same_data_set(tmp_path, kind):
    path = write(tmp_path / f"parcels.{kind}", {"text": TEXTS, "label": LABELS})
    found = load_file(path)
    assert found.name == "parcels"
    assert found.texts == TEXTS
    assert found.labels.tolist() == LABELS
    assert found.class_counts == {"bad": 6, "good": 24}
    assert str(path) in found.provenance
    assert (found.features, found.ids, found.groups, bool(found.problems)) == (None,) * 3 + (False,)


def test_given_columns_are_taken_as_they_are(tmp_path):
    columns = {"no": [f"p{i}" for i in range(30)], "depot": list("ABC") * 10}
    columns |= {"a": LABELS[::-1], "b": TEXTS, "text": TEXTS[::-1], "label": LABELS}
    path = write(tmp_path / "parcels.csv", columns)
    found = load_file(path, "b", "a", group="depot", id="no", name="late parcels", licence="CC0")
    assert (found.name, found.licence) == ("late parcels", "CC0")
    assert found.texts == TEXTS
    assert found.labels.tolist() == LABELS[::-1]
    assert found.ids == columns["no"]
    assert found.groups.tolist() == columns["depot"]


def test_several_possible_columns_are_refused_with_the_parameter_that_chooses(tmp_path):
    path = write(tmp_path / "labels.csv", {"text": TEXTS, "mood": LABELS, "depot": list("AB") * 15})
    with pytest.raises(DataError) as caught:
        load_file(path)
    assert caught.value.parameter == "label"
    assert load_file(path, group="depot").labels.tolist() == LABELS


def test_rows_without_a_label_or_a_text_are_left_out_and_counted(tmp_path, caplog):
    texts = ["", *TEXTS[1:4], "  ", *TEXTS[5:]]
    labels = [*LABELS[:2], "", *LABELS[3:]]
    path = write(tmp_path / "parcels.csv", {"text": texts, "label": labels})
    found = load_file(path)
    assert found.n_rows == 27
    assert found.texts[:2] == [TEXTS[1], TEXTS[3]]
    assert found.problems.first == {
        "no text: left out": ["parcels.csv, row 1", "parcels.csv, row 5"],
        "no label: left out": ["parcels.csv, row 3"],
    }
    assert "3 problems" in caplog.text


def test_an_empty_group_is_an_error_with_its_row_in_the_file(tmp_path):
    groups = ["A"] * 30
    groups[4] = ""
    columns = {"text": ["", *TEXTS[1:]], "label": LABELS, "depot": groups}
    path = write(tmp_path / "parcels.csv", columns)
    with pytest.raises(DataError, match="row 5"):
        load_file(path, group="depot")


# --------------------------------------------------------------------------------------- features


def table():
    return {
        "id": list(range(100, 130)),
        "weight": [round(0.5 * i, 1) for i in range(30)],
        "depot": list("AB") * 15,
        "gone": [""] * 5 + ["1.5"] * 12 + ["2.5"] * 13,
        "late": [0] * 24 + [1] * 6,
    }


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_without_texts_is_one_of_features(tmp_path, kind):
    found = load_file(write(tmp_path / f"parcels.{kind}", table()), label="late")
    assert found.texts is None
    assert found.features.dtype == np.float32
    assert found.features.shape == (30, len(found.feature_names))
    assert "id" not in found.feature_names
    assert found.features[:, found.feature_names.index("weight")].tolist() == table()["weight"]
    assert {"depot=A", "depot=B"} & set(found.feature_names)
    assert np.isfinite(found.features).all()
    assert found.labels.tolist() == table()["late"]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"features": ["wait"]}, DataError),
        ({"features": "weight"}, ParameterError),
        ({"features": ["weight"], "text": "depot"}, ParameterError),
        ({"features": ["late"]}, DataError),
        ({"features": []}, DataError),
    ],
)
def test_features_that_cannot_be_are_refused(tmp_path, given, error):
    path = write(tmp_path / "parcels.csv", table())
    with pytest.raises(error) as refused:
        load_file(path, label="late", **given)
    assert refused.value.parameter == "features"
