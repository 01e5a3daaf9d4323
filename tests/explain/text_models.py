"""A small text classifier: texts through TF-IDF into the classifier; shared with the report."""

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from setconv.classifier import SetConvClassifier


class TextModel:
    """What a text classifier offers: the methods of the classifier, with texts for rows."""

    def __init__(self, **parameters):
        self.encoder = make_pipeline(
            TfidfVectorizer(token_pattern=r"\S+"), TruncatedSVD(12, random_state=0)
        )
        small = {"n_members": 3, "encoder": (16,), "out_features": 8, "max_steps": 80}
        small |= {"random_state": 0, "progress": False}
        self.classifier = SetConvClassifier(**small, **parameters)
        self.batches = []

    def fit(self, texts, y):
        self.classifier.fit(self.encoder.fit_transform(texts), y)
        return self

    def __getattr__(self, name):
        if name.startswith("_") or name in ("classifier", "encoder"):
            raise AttributeError(name)
        value = getattr(self.classifier, name)
        if not callable(value):
            return value

        def asked(texts):
            self.batches.append((name, len(texts)))
            assert all(text.strip() for text in texts), "models may refuse empty texts"
            return value(self.encoder.transform(texts))

        return asked


def write_texts(n=160, seed=0):
    """Short reports, every eighth of which is about a fire."""
    rng = np.random.default_rng(seed)
    calm = ["pump", "valve", "checked", "normal", "today", "shift", "clean", "quiet", "oil"]
    fire = ["smoke", "flames", "burning"]
    texts, labels = [], []
    for number in range(n):
        words = list(rng.choice(calm, size=6))
        hot = number % 8 == 0
        if hot:
            words[rng.integers(6)] = rng.choice(fire)
            words[rng.integers(6)] = rng.choice(fire)
        texts.append(" ".join(words))
        labels.append("fire" if hot else "calm")
    return texts, np.array(labels)
