"""The catalogue of data sets: what each is, where it comes from, under which licence, and its checksums.

Variants of a set (other rows, other classes) are small differences over one entry and share its file; another coding
of categories is set by `Rules`, not by an entry.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from plumbob.data.prepare import Rules

CC_BY = "CC BY 4.0"
_UCI = "https://archive.ics.uci.edu/static/public"


@dataclass(frozen=True)
class Cut:
    """Two classes made from a number: below `at`, and `at` or above."""

    at: float
    below: str
    above: str


@dataclass(frozen=True)
class DataSet:
    """One entry of the registry. `features` counts the raw columns that are neither label nor identifier."""

    name: str
    summary: str
    kind: str  # table, image, built-in
    rows: int
    features: int
    classes: int
    label: str
    licence: str
    origin: str  # who made it, when, and under which name it can be cited
    file: str | None = None  # relative to the data folder
    sha256: str = ""  # of the file's bytes
    content_sha256: str = ""  # of its cells or pixels, however packed
    urls: tuple[str, ...] = ()  # the official source
    unfetchable: str = ""  # why the official source cannot give this file, where it cannot
    drop: tuple[str, ...] = ()  # columns that are no features
    drop_rows_with: str = ""  # rows with this word in any cell are left out
    label_bins: int | None = None
    label_cut: Cut | None = None
    rules: Rules = field(default_factory=Rules)
    variant_of: str = ""


def _uci(number: int, slug: str) -> tuple[str, ...]:
    return (f"{_UCI}/{number}/{slug}.zip",)


_BANK = DataSet(
    "bank",
    "phone campaign of a Portuguese bank: does the client subscribe to a deposit",
    "table",
    41_188,
    20,
    2,
    "y",
    CC_BY,
    "UCI 222 Bank Marketing, bank-additional-full; Moro, Rita, Cortez (2014), doi:10.24432/C5K306",
    "bank/bank.csv.gz",
    "db6c49717dc7a3598bc62bda773b74b52293bd5f288859538a90c162b76b2763",
    "124af3dc370178e83132bf50d368653f340607214fa82802d1d5c0353472425f",
    _uci(222, "bank+marketing"),
)

_NEWS = DataSet(
    "news",
    "shares of articles of a news site, five classes by quantiles; 53 of UCI's 58 columns",
    "table",
    39_644,
    53,
    5,
    "shares",
    CC_BY,
    "UCI 332 Online News Popularity; Fernandes, Vinagre, Cortez, Sernadela (2015), doi:10.24432/C5NS3V",
    "news/news.csv.gz",
    "af419300d74d28ac8db4cd135e0f54f13bae67c774d605ef43cdeeb86373e265",
    "945224574f51a613fbb582ba053b73454d9fd1ded31741fc80b8a372c66ea403",
    _uci(332, "online+news+popularity"),
    label_bins=5,
)

_TABLES = (
    _BANK,
    replace(
        _BANK,
        name="bank-known",
        summary="the rows of `bank` without 'unknown' cells",
        rows=30_488,
        drop_rows_with="unknown",
        variant_of="bank",
    ),
    replace(
        _BANK,
        name="bank-full",
        summary="the older file of the bank data: more rows, no economic indicators",
        rows=45_211,
        features=16,
        origin="UCI 222 Bank Marketing, bank-full; Moro, Rita, Cortez (2014), doi:10.24432/C5K306",
        file="bank/bank-full.csv.gz",
        sha256="d9a8721a9d80f5005666cc8620a1326e340de29b6defa3f64df2cb5c26717076",
        content_sha256="f8b93a792f9dc74cc2fd88e3b48c2a5a8b83da46fa8fb818ab477f8e68981cca",
    ),
    DataSet(
        "breast-csv",
        "the data of `breast` with UCI's column names",
        "table",
        569,
        30,
        2,
        "Diagnosis",
        CC_BY,
        "UCI 17 Breast Cancer Wisconsin (Diagnostic); Wolberg, Mangasarian, Street (1993), doi:10.24432/C5DW2B",
        "breast/breast.csv.gz",
        "70555521097f1d395b44ed008b0b2aba1476e9dc628d0e4d7b8aec211cd42cf7",
        "faa0097fe19a02cc2744556784974c9f4ca5e39fd1bbea0cd7ee204ab59dc65d",
        _uci(17, "breast+cancer+wisconsin+diagnostic"),
        drop=("ID",),
    ),
    DataSet(
        "covertype",
        "forest cover type from map data: slope, soil, distance to water",
        "table",
        581_012,
        54,
        7,
        "Cover_Type",
        f"{CC_BY} (copyright Jock A. Blackard and Colorado State University)",
        "UCI 31 Covertype; Blackard (1998), doi:10.24432/C50K5N",
        "covertype/covertype.csv.gz",
        "2c248281ab4f08737f16b6ece537ae49604cfacdaf90a188ef0f6474ccacf459",
        "d97f607ee94478601ed0441536d21bc3357383b7a04afb2637692bd73287c0bd",
        _uci(31, "covertype"),
    ),
    DataSet(
        "credit",
        "credit card clients in Taiwan: does the client default next month",
        "table",
        30_000,
        23,
        2,
        "default payment next month",
        CC_BY,
        "UCI 350 Default of Credit Card Clients; Yeh (2009), doi:10.24432/C55S3H",
        "credit/credit.csv.gz",
        "fad968254e68183c43ebbe35adfa588c0e5073a816b811495646f511d79a0472",
        "25b41923116ba23abbabcd3d4285c97dd184a1306097de48ef05d03628acf7e9",
        _uci(350, "default+of+credit+card+clients"),
        unfetchable="its official archive holds an Excel 97 workbook, which Plumbob does not read",
        drop=("ID",),
    ),
    DataSet(
        "drive",
        "motor current signals of drives with intact and defective components",
        "table",
        58_509,
        48,
        11,
        "class",
        CC_BY,
        "UCI 325 Dataset for Sensorless Drive Diagnosis; Bator (2013), doi:10.24432/C5VP5F",
        "drive/drive.csv.gz",
        "5b0d79740a1a37dbc58c7cbea0ae4c48780d624b7c7d4d6794e99151905923fd",
        "bf3afc941cdfdb4834370e593b98924c026a6784772bf5b900d8a01bfd7506ca",
        _uci(325, "dataset+for+sensorless+drive+diagnosis"),
    ),
    DataSet(
        "mushroom",
        "mushrooms described by categories: edible or poisonous; one of the 22 columns is constant",
        "table",
        8_124,
        22,
        2,
        "class",
        CC_BY,
        "UCI 73 Mushroom (1981), doi:10.24432/C5959T",
        "mushroom/mushroom.csv.gz",
        "5de39e18171a869fd0b672443c1130e85ac3165fa572365b42cda6407bf16599",
        "a14bcb1d44a035d302827acc8265df645953e1869517e14f06370b1dc3936e46",
        _uci(73, "mushroom"),
    ),
    _NEWS,
    replace(
        _NEWS,
        name="news-2",
        summary="`news` with two classes, split at 1,400 shares as UCI suggests",
        classes=2,
        label_bins=None,
        label_cut=Cut(1_400, "below 1400", "from 1400 on"),
        variant_of="news",
    ),
    replace(
        _NEWS,
        name="news-sample",
        summary="`news` with all of UCI's columns and 9,644 of its rows",
        rows=9_644,
        features=58,
        file="news/news_all_columns_sample.csv.gz",
        sha256="6158badd771db14f36441fb919046ba45d445d0450ccc10d23c4856d0a3120e8",
        content_sha256="61a22770950557da5ac0e30fdc5deb314e7380f3ee1e4887b29e49da6413afee",
        unfetchable="its rows are the test set of a course competition, which no official source offers",
        drop=("url", "timedelta"),
    ),
    DataSet(
        "nursery",
        "ranked applications to nursery schools; one class has only two rows",
        "table",
        12_960,
        8,
        5,
        "class",
        CC_BY,
        "UCI 76 Nursery; Rajkovic (1989), doi:10.24432/C5P88W",
        "nursery/nursery.csv.gz",
        "79e604724e8d76ef135657a2d2d4d2b26b0548d34f3790c2bea2c3591ea868dd",
        "7b7a1b67de66902dd46dc1a9087962a707fadb322d61f69a35e9052f7a619368",
        _uci(76, "nursery"),
    ),
    DataSet(
        "robot",
        "ultrasound readings of a wall-following robot",
        "table",
        5_456,
        24,
        4,
        "Class",
        CC_BY,
        "UCI 194 Wall-Following Robot Navigation Data; Freire, Veloso, Barreto (2009), doi:10.24432/C57C8W",
        "robot/robot.csv.gz",
        "9111ed1981f24aac93cf3cb4f5f1dd203ec6eec51e8556d4f0fb88bffbf35e49",
        "52ed50c7c14c6f9d20a12dd883dc340acc098d4ced2c276ca51837f2e1dbd3fe",
        _uci(194, "wall+following+robot+navigation+data"),
    ),
    DataSet(
        "satellite",
        "Landsat pixels with their neighbours: type of soil",
        "table",
        6_435,
        36,
        6,
        "class",
        CC_BY,
        "UCI 146 Statlog (Landsat Satellite); Srinivasan (1993), doi:10.24432/C55887",
        "satellite/satellite.csv.gz",
        "2f1525335c3530211c8d096de2e1fa56d0ff9174eeda5027399398bee213c3d5",
        "a028f515f5b3f15574749b8cbc260407ef655c65eb2c2be6462e20449b22c4db",
        _uci(146, "statlog+landsat+satellite"),
    ),
    DataSet(
        "student",
        "students of two Portuguese schools: mathematics passed (final grade G3 of at least 10 of 20) or failed",
        "table",
        395,
        32,
        2,
        "G3",
        CC_BY,
        "UCI 320 Student Performance, student-mat; Cortez (2008), doi:10.24432/C5TG7T",
        "student/student.csv.gz",
        "689342fb38ce9c62fd5896ab4864953d92563fefb82a34f425c8c158937bf8f4",
        "853f15f613f767152fbfc83dbdc6048e094b9bb09fadb355d126456c2429335a",
        _uci(320, "student+performance"),
        label_cut=Cut(10, "fail", "pass"),
    ),
    DataSet(
        "vehicle",
        "shape features of the silhouettes of four vehicles",
        "table",
        846,
        18,
        4,
        "class",
        CC_BY,
        "UCI 149 Statlog (Vehicle Silhouettes); Mowforth, Shepherd, doi:10.24432/C5HG6N",
        "vehicle/vehicle.csv.gz",
        "401b8213376b74e8a08f188bb98e287c4b42cee624f2c21f2e62d62ccc0674c8",
        "1d5b657830cd52abe15ff04e7e51e5a2e5e2ffc0e54afc224376e48ffad6dec1",
        _uci(149, "statlog+vehicle+silhouettes"),
    ),
)

_IMAGES = (
    DataSet(
        "cifar10",
        "small colour images, 32 x 32 x 3; the first 4,000 of data_batch_1",
        "image",
        4_000,
        3_072,
        10,
        "labels",
        "no explicit licence",
        "CIFAR-10; Krizhevsky (2009), Learning multiple layers of features from tiny images",
        "cifar10/cifar10.npz",
        "c99149eb43588a6b307d48c0d1ea70740888924ab847ebfe3808a0cc5c0c5bb9",
        "3f9739f0a53e690cd915427ccfc7148f58dedfbdf514c53eb3bd136da879baa5",
        ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
    ),
    DataSet(
        "linnaeus5",
        "berries, birds, dogs and flowers, 32 x 32 x 3, 500 of each",
        "image",
        2_000,
        3_072,
        4,
        "labels",
        "no explicit licence; images from pixabay",
        "Linnaeus 5; Chaladze, Kalatozishvili (2017), Linnaeus 5 dataset for machine learning",
        "linnaeus5/linnaeus5.npz",
        "2454f1be0ff351d5df969399aab5572407f29c7809b253651fc0496fcb7e54cf",
        "c505cf823a670378f313b6687dd97011b22cfa23a0a5095ef82ca672cd111b9e",
        unfetchable="its images were downscaled from a copy of the 256 x 256 set, which has no official address",
    ),
    DataSet(
        "mnist",
        "handwritten digits, 28 x 28; the first 4,000 of the test set",
        "image",
        4_000,
        784,
        10,
        "labels",
        "usually stated as CC BY-SA 3.0",
        "MNIST; LeCun, Cortes, Burges (1998)",
        "mnist/mnist.npz",
        "a2cd4718e5556419e80a77f8e4063dd3331ab8b10601acb9b0e147f58f4e23f4",
        "cf6961c3ab6578cbd9d8048c149c86cece8d70c0a62252aba770ce3c4861bbba",
        (
            "http://yann.lecun.com/exdb/mnist/t10k-images-idx3-ubyte.gz",
            "http://yann.lecun.com/exdb/mnist/t10k-labels-idx1-ubyte.gz",
        ),
    ),
    DataSet(
        "yale",
        "faces of 15 people, 32 x 32, 11 images each; labels 1 to 15",
        "image",
        165,
        1_024,
        15,
        "labels",
        "non-commercial research use; photographs of people",
        "Yale Face Database; Belhumeur, Hespanha, Kriegman (1997), the 32 x 32 version by D. Cai",
        "yale/yale.npz",
        "7ec20e0edb20a99da0ee9a8417479e034f0a8cfa5fb6525c5915c2d4d794abda",
        "19fd85207712ad7243df6868654c334e197949d1261968f89e6889615ff87ec2",
        unfetchable="it has no official address that serves the 32 x 32 version",
    ),
)

_BUILT_IN = (
    DataSet(
        "breast",
        "cell nuclei in images of tissue: malignant or benign; included in scikit-learn",
        "built-in",
        569,
        30,
        2,
        "target",
        CC_BY,
        "UCI 17 Breast Cancer Wisconsin (Diagnostic); Wolberg, Mangasarian, Street (1993), doi:10.24432/C5DW2B",
    ),
    DataSet(
        "digits",
        "handwritten digits, 8 x 8; included in scikit-learn; three pixels are constant",
        "built-in",
        1_797,
        64,
        10,
        "target",
        CC_BY,
        "UCI 80 Optical Recognition of Handwritten Digits (test set); Alpaydin, Kaynak (1998), doi:10.24432/C50P49",
    ),
    DataSet(
        "synthetic-1",
        "generated by scikit-learn: 10 informative columns and 15 linear combinations of them",
        "built-in",
        100_000,
        25,
        10,
        "target",
        "none needed",
        "sizes of the first synthetic set of Luo et al. (2021), Table II, which does not give the other settings",
    ),
    DataSet(
        "synthetic-2",
        "generated by scikit-learn: 20 informative columns and 30 linear combinations of them",
        "built-in",
        100_000,
        50,
        5,
        "target",
        "none needed",
        "sizes of the second synthetic set of Luo et al. (2021), Table II, which does not give the other settings",
    ),
)

DATA_SETS: dict[str, DataSet] = {
    entry.name: entry for entry in sorted((*_TABLES, *_IMAGES, *_BUILT_IN), key=lambda entry: entry.name)
}
