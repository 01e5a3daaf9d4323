"""The worked example of Demsar (2006), Statistical comparisons of classifiers, Table 6."""

import pandas as pd

METHODS = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]

# AUC; "voting" has 0.975 twice in print, but ranks 2 and 3.
_AUC = {
    "adult": (0.763, 0.768, 0.771, 0.798),
    "breast cancer": (0.599, 0.591, 0.590, 0.569),
    "breast cancer wisconsin": (0.954, 0.971, 0.968, 0.967),
    "cmc": (0.628, 0.661, 0.654, 0.657),
    "ionosphere": (0.882, 0.888, 0.886, 0.898),
    "iris": (0.936, 0.931, 0.916, 0.931),
    "liver disorders": (0.661, 0.668, 0.609, 0.685),
    "lung cancer": (0.583, 0.583, 0.563, 0.625),
    "lymphography": (0.775, 0.838, 0.866, 0.875),
    "mushroom": (1.000, 1.000, 1.000, 1.000),
    "primary tumor": (0.940, 0.962, 0.965, 0.962),
    "rheum": (0.619, 0.666, 0.614, 0.669),
    "voting": (0.972, 0.981, 0.9751, 0.975),
    "wine": (0.957, 0.978, 0.946, 0.970),
}

# Critical values of the two-tailed Nemenyi test, Table 5, for 2 to 10 methods.
CRITICAL_VALUES = {
    0.05: (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164),
    0.10: (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920),
}


def scores():
    """The table: one row a data set, one column a method."""
    return pd.DataFrame.from_dict(_AUC, orient="index", columns=METHODS)
