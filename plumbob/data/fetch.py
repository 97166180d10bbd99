"""Data files from their official sources: download, convert, verify, and only then move into place.

An archive is turned into the registry's form: comma separated, one header row, label last, cells as the source wrote
them. The result must have the registry's content hash, so a source that has changed is refused, whatever its bytes.
All work happens in a temporary folder beside the target; the file appears complete or not at all.
"""

from __future__ import annotations

import csv
import gzip
import http.client
import io
import ssl
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import numpy as np

from plumbob.data.catalogue import DataSet
from plumbob.data.registry import cache_folder, content_digest, data_folder, find, is_intact
from plumbob.errors import BadInput

MOST_DOWNLOADED_BYTES = 500_000_000  # bytes of one download, and of one unpacked member
TIMEOUT = 30.0  # seconds without an answer
_BLOCK = 1 << 16


@dataclass(frozen=True)
class Recipe:
    """Where a table is in its archive, and in what form."""

    members: tuple[str, ...]  # file names, read one after the other; archives inside the archive are opened
    separator: str = ","  # " " stands for any white space
    columns: tuple[str, ...] = ()  # names in the order of the source; none when the source has a header
    without: tuple[str, ...] = ()  # columns of the source that the registry's file lacks


def _attributes(stem: str, count: int) -> tuple[str, ...]:
    return tuple(f"{stem}{i + 1}" for i in range(count))


_MUSHROOM = (
    "class cap-shape cap-surface cap-color bruises odor gill-attachment gill-spacing gill-size gill-color stalk-shape "
    "stalk-root stalk-surface-above-ring stalk-surface-below-ring stalk-color-above-ring stalk-color-below-ring "
    "veil-type veil-color ring-number ring-type spore-print-color population habitat"
)
_COVERTYPE = (
    "Elevation Aspect Slope Horizontal_Distance_To_Hydrology Vertical_Distance_To_Hydrology "
    "Horizontal_Distance_To_Roadways Hillshade_9am Hillshade_Noon Hillshade_3pm Horizontal_Distance_To_Fire_Points"
)
_VEHICLE = (
    "COMPACTNESS,CIRCULARITY,DISTANCE CIRCULARITY,RADIUS RATIO,PR.AXIS ASPECT RATIO,MAX.LENGTH ASPECT RATIO,"
    "SCATTER RATIO,ELONGATEDNESS,PR.AXIS RECTANGULARITY,MAX.LENGTH RECTANGULARITY,SCALED VARIANCE ALONG MAJOR AXIS,"
    "SCALED VARIANCE ALONG MINOR AXIS,SCALED RADIUS OF GYRATION,SKEWNESS ABOUT MAJOR AXIS,"
    "SKEWNESS ABOUT MINOR AXIS,KURTOSIS ABOUT MINOR AXIS,KURTOSIS ABOUT MAJOR AXIS,HOLLOWS RATIO,class"
)
_NUCLEUS = "radius texture perimeter area smoothness compactness concavity concave_points symmetry fractal_dimension"
_NURSERY = "parents has_nurs form children housing finance social health class"

RECIPES: dict[str, Recipe] = {
    "bank/bank.csv.gz": Recipe(("bank-additional-full.csv",), ";"),
    "bank/bank-full.csv.gz": Recipe(("bank-full.csv",), ";"),
    "breast/breast.csv.gz": Recipe(
        ("wdbc.data",), ",", ("ID", "Diagnosis", *(f"{name}{i}" for i in (1, 2, 3) for name in _NUCLEUS.split()))
    ),
    "covertype/covertype.csv.gz": Recipe(
        ("covtype.data",),
        ",",
        (*_COVERTYPE.split(), *_attributes("Wilderness_Area", 4), *_attributes("Soil_Type", 40), "Cover_Type"),
    ),
    "drive/drive.csv.gz": Recipe(("Sensorless_drive_diagnosis.txt",), " ", (*_attributes("Attribute", 48), "class")),
    "mushroom/mushroom.csv.gz": Recipe(("agaricus-lepiota.data",), ",", tuple(_MUSHROOM.split())),
    "news/news.csv.gz": Recipe(
        ("OnlineNewsPopularity.csv",),
        ",",
        without=(
            "url",
            "timedelta",
            "n_non_stop_words",
            "n_non_stop_unique_tokens",
            "kw_min_max",
            "self_reference_max_shares",
            "is_weekend",
        ),
    ),
    "nursery/nursery.csv.gz": Recipe(("nursery.data",), ",", tuple(_NURSERY.split())),
    "robot/robot.csv.gz": Recipe(("sensor_readings_24.data",), ",", (*_attributes("US", 24), "Class")),
    "satellite/satellite.csv.gz": Recipe(("sat.trn", "sat.tst"), " ", (*_attributes("Attribute", 36), "class")),
    "student/student.csv.gz": Recipe(("student-mat.csv",), ";"),
    "vehicle/vehicle.csv.gz": Recipe(
        tuple(f"xa{letter}.dat" for letter in "abcdefghi"), " ", tuple(_VEHICLE.split(","))
    ),
}


def fetch(name: str, *, folder: Path | None = None, urls: Sequence[str] | None = None) -> Path:
    """Put a data set's file in the data folder and return its path; a file that is already there and valid is kept.

    `urls` names other addresses of the same archives, such as a mirror inside a company.
    """
    entry = find(name)
    if entry.file is None:
        raise BadInput(f"data set '{name}' is built in; there is nothing to fetch")
    target = (folder or data_folder() or cache_folder()) / entry.file
    if target.is_file() and is_intact(target, entry):
        return target
    if entry.unfetchable:
        raise BadInput(f"data set '{name}' cannot be fetched: {entry.unfetchable}")
    try:
        _fetch_to(target, entry, urls or entry.urls)
    except OSError as error:
        raise BadInput(f"cannot write '{target}': {error.strerror or 'the folder is not writable'}") from error
    return target


def _fetch_to(target: Path, entry: DataSet, urls: Sequence[str]) -> None:
    root = target.parent.parent
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=root) as work:
        archives = [download(url, Path(work) / f"archive-{i}") for i, url in enumerate(urls)]
        made = Path(work) / target.name
        _convert(archives, made, entry)
        if content_digest(made) != entry.content_sha256:
            raise BadInput(
                f"data set '{entry.name}': what {_host(urls[0])} offers is not the expected data: its content hash differs"
            )
        target.parent.mkdir(exist_ok=True)
        made.replace(target)


# download


def download(url: str, target: Path, *, limit: int = MOST_DOWNLOADED_BYTES) -> Path:
    """Download a URL to a file, completely or with an error; the caller removes its folder on failure."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise BadInput(f"cannot fetch '{url}': expected a URL that begins with https:// or http://")
    request = urllib.request.Request(url, headers={"User-Agent": "plumbob"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            _stream(response, target, limit, url)
    except urllib.error.HTTPError as error:
        raise BadInput(f"{_host(url)} answered {error.code} to '{url}'; the file may have moved") from error
    except (urllib.error.URLError, TimeoutError, ConnectionError, ssl.SSLError) as error:
        raise BadInput(
            f"cannot reach {_host(url)}: check the network connection, or set PLUMBOB_DATA to a folder with the data"
        ) from error
    except http.client.HTTPException as error:
        raise BadInput(f"{_host(url)} closed the connection during the download of '{url}'; try again") from error
    return target


def _stream(response: Any, target: Path, limit: int, url: str) -> None:
    announced = response.headers.get("Content-Length")
    expected = int(announced) if announced and announced.isdigit() else None
    if expected is not None and expected > limit:
        raise BadInput(f"'{url}' is {expected:,} bytes, more than the limit of {limit:,}")
    got = 0
    with target.open("wb") as stream, _progress(url, expected) as advance:
        while block := response.read(_BLOCK):
            got += len(block)
            if got > limit:
                raise BadInput(f"'{url}' is more than the limit of {limit:,} bytes")
            stream.write(block)
            advance(len(block))
    if expected is not None and got != expected:
        raise BadInput(
            f"{_host(url)} closed the connection during the download of '{url}' at {got:,} of {expected:,} bytes; try again"
        )


class _progress:
    """A progress bar if stderr is a terminal, else nothing."""

    def __init__(self, url: str, total: int | None) -> None:
        self._bar: Any = None
        self._url, self._total = url, total

    def __enter__(self) -> Callable[[int], None]:
        if not sys.stderr.isatty():
            return lambda _: None
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        parts = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._bar = Progress(*parts, console=Console(stderr=True), transient=True)
        self._bar.start()
        task = self._bar.add_task(self._url.rsplit("/", 1)[-1], total=self._total)
        return lambda size: self._bar.advance(task, size)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _host(url: str) -> str:
    return urlsplit(url).netloc or url


# conversion


def _convert(archives: Sequence[Path], made: Path, entry: DataSet) -> None:
    """Turn downloaded archives into the registry's form of the set."""
    converters: dict[str, Callable[[Sequence[Path], Path], None]] = {"mnist": _mnist, "cifar10": _cifar10}
    try:
        if entry.name in converters:
            converters[entry.name](archives, made)
        else:
            convert_table(archives[0], made, RECIPES[entry.file or ""], entry.label)
    except (zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"data set '{entry.name}': the downloaded archive is damaged; try again") from error
    except (KeyError, ValueError, IndexError) as error:
        raise BadInput(f"data set '{entry.name}': the downloaded archive is not laid out as expected") from error


def convert_table(archive: Path, made: Path, recipe: Recipe, label: str) -> None:
    """A table out of a zip archive, its label last, as a gzipped CSV with the same bytes every time."""
    with (
        made.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        io.TextIOWrapper(packed, "utf-8", newline="") as text,
    ):
        writer = csv.writer(text, lineterminator="\n")
        rows = _rows(archive, recipe)
        names = list(recipe.columns) or [name.strip() for name in next(rows)]
        order = [i for i, name in enumerate(names) if name != label and name not in recipe.without]
        order.append(names.index(label))
        writer.writerow([names[i] for i in order])
        for row in rows:
            if len(row) != len(names):
                raise ValueError("a row does not have as many columns as the header")
            writer.writerow([row[i] for i in order])


def _rows(archive: Path, recipe: Recipe) -> Iterator[list[str]]:
    with zipfile.ZipFile(archive) as opened:
        for member in recipe.members:
            lines = io.TextIOWrapper(io.BytesIO(_member(opened, member)), "utf-8", newline="")
            if recipe.separator == " ":
                yield from (cells for line in lines if (cells := line.split()))
            else:
                rows = csv.reader(lines, delimiter=recipe.separator, skipinitialspace=True)
                yield from ([cell.strip() for cell in row] for row in rows if row)


def _member(opened: zipfile.ZipFile, name: str) -> bytes:
    """A member by its file name, wherever it is: in a folder, gzipped, or in a nested archive."""
    for info in opened.infolist():
        base = info.filename.rsplit("/", 1)[-1]
        if base == name:
            return _unpacked(opened, info)
        if base == f"{name}.gz":
            return _gunzipped(_unpacked(opened, info))
    for info in opened.infolist():
        if info.filename.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(_unpacked(opened, info))) as inner:
                try:
                    return _member(inner, name)
                except KeyError:
                    continue
    raise KeyError(name)


def _unpacked(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with opened.open(info) as stream:
        return _limited(stream)


def _gunzipped(data: bytes) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
        return _limited(stream)


def _limited(stream: IO[bytes] | gzip.GzipFile) -> bytes:
    """All bytes of a compressed stream, unless it is a decompression bomb."""
    data = stream.read(MOST_DOWNLOADED_BYTES + 1)
    if len(data) > MOST_DOWNLOADED_BYTES:
        raise ValueError("a member unpacks to more than the limit")
    return data


def _mnist(archives: Sequence[Path], made: Path) -> None:
    """The first 4,000 test images from the two idx files: headers of 16 and 8 bytes, then plain bytes."""
    pictures, labels = (np.frombuffer(_gunzipped(path.read_bytes()), dtype=np.uint8) for path in archives)
    np.savez_compressed(
        made, images=pictures[16:].reshape(-1, 28, 28)[:4_000], labels=labels[8:][:4_000].astype(np.int64)
    )


def _cifar10(archives: Sequence[Path], made: Path) -> None:
    """The first 4,000 images of the first batch: a label byte, then the red, green and blue planes."""
    with tarfile.open(archives[0], "r:gz") as opened:
        member = opened.extractfile("cifar-10-batches-bin/data_batch_1.bin")
        if member is None:
            raise KeyError("data_batch_1.bin")
        records = np.frombuffer(member.read(4_000 * 3_073), dtype=np.uint8).reshape(4_000, 3_073)
    pictures = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    np.savez_compressed(made, images=pictures, labels=records[:, 0].astype(np.int64))
