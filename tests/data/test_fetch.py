"""Fetching: real transfers from a server on this machine; a file appears whole and right, or not at all."""

import contextlib
import csv
import gzip
import io
import os
import socket
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from plumbob.data.catalogue import DATA_SETS
from plumbob.data.fetch import RECIPES, Recipe, convert_table, download, fetch
from plumbob.data.files import read_frame
from plumbob.data.registry import content_digest
from plumbob.errors import BadInput

pytestmark = pytest.mark.nodata


class Server:
    """Serves bytes by path; `announce` overrides the length it promises."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.files: dict[str, bytes] = {}
        self.announce: int | None = None
        self.asked = 0

    def offer(self, name: str, content: bytes) -> str:
        self.files[f"/{name}"] = content
        return f"http://127.0.0.1:{self.port}/{name}"


@pytest.fixture
def server() -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked += 1
            body = state.files.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(state.announce or len(body or b"")))
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # a client that refuses a big file hangs up
                self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state = Server(running.server_port)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    running.shutdown()
    running.server_close()
    thread.join()


def left_behind(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*")]


def zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def original(file: str) -> Path:
    return Path(os.environ["PLUMBOB_DATA"]) / file


def as_the_source(file: str) -> dict[str, bytes]:
    """A prepared table turned back into the members of its official archive, by the README of the data sets."""
    recipe = RECIPES[file]
    header, *rows = csv.reader(io.StringIO(gzip.decompress(original(file).read_bytes()).decode()))
    names = [*recipe.without, *(recipe.columns or header)]
    place = {name: i for i, name in enumerate(header)}
    cells = [[row[place[name]] if name in place else "0" for name in names] for row in rows]
    if not recipe.columns:
        quoted = recipe.separator == ";"
        cells.insert(0, [f'"{name}"' if quoted else name for name in names])
    joint = ", " if recipe.without else recipe.separator  # the source of news puts a space after each comma
    lines = [joint.join(row) for row in cells]
    cuts = np.array_split(np.arange(len(lines)), len(recipe.members))
    return {
        member: "".join(f"{lines[i]}\n" for i in part).encode()
        for member, part in zip(recipe.members, cuts, strict=True)
    }


# download


def test_a_download_is_the_file(server: Server, tmp_path: Path) -> None:
    content = bytes(range(256)) * 1_000
    assert download(server.offer("a.zip", content), tmp_path / "a").read_bytes() == content


def test_a_truncated_download_is_refused(server: Server, tmp_path: Path) -> None:
    url = server.offer("a.zip", b"x" * 100)
    server.announce = 200
    with pytest.raises(BadInput, match="closed the connection during the download"):
        download(url, tmp_path / "a")


def test_a_file_above_the_limit_is_refused(server: Server, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is 100 bytes, more than the limit of 99"):
        download(server.offer("a.zip", b"x" * 100), tmp_path / "a", limit=99)


def test_a_file_that_has_moved_is_said_so(server: Server, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="answered 404"):
        download(f"http://127.0.0.1:{server.port}/gone.zip", tmp_path / "a")


def test_no_connection_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound but not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(BadInput, match=f"cannot reach {host}: check the network connection"):
            download(f"http://{host}/a.zip", tmp_path / "a")


def test_only_web_addresses_are_fetched(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="expected a URL that begins with https://"):
        download((tmp_path / "a").as_uri(), tmp_path / "b")


# whole fetches


@pytest.mark.needs_data(parameter="name")
@pytest.mark.parametrize(
    "name",
    ["bank-full", "breast-csv", "mushroom", "news", "nursery", "robot", "satellite", "student", "vehicle"],
)
def test_an_official_archive_becomes_the_known_file(server: Server, tmp_path: Path, name: str) -> None:
    entry = DATA_SETS[name]
    assert entry.file is not None
    made = fetch(name, folder=tmp_path, urls=[server.offer("a.zip", zipped(as_the_source(entry.file)))])
    assert content_digest(made) == entry.content_sha256
    assert left_behind(tmp_path) == [entry.file.split("/")[0], entry.file]


@pytest.mark.needs_data("bank")
def test_an_archive_inside_the_archive_is_opened(server: Server, tmp_path: Path) -> None:
    inner = {f"bank-additional/{name}": body for name, body in as_the_source("bank/bank.csv.gz").items()}
    url = server.offer("a.zip", zipped({"bank.zip": zipped({"other.csv": b"a"}), "bank-additional.zip": zipped(inner)}))
    assert fetch("bank-known", folder=tmp_path, urls=[url]) == tmp_path / "bank" / "bank.csv.gz"


@pytest.mark.needs_data("mnist")
def test_mnist_is_cut_from_its_two_files(server: Server, tmp_path: Path) -> None:
    with np.load(original("mnist/mnist.npz")) as arrays:
        pictures, labels = arrays["images"], arrays["labels"]
    more = np.zeros((5, 28, 28), dtype=np.uint8)  # the source goes on after the rows that are kept
    urls = [
        server.offer("images.gz", gzip.compress(bytes(16) + np.concatenate([pictures, more]).tobytes(), 1)),
        server.offer("labels.gz", gzip.compress(bytes(8) + labels.astype(np.uint8).tobytes() + bytes(5), 1)),
    ]
    assert content_digest(fetch("mnist", folder=tmp_path, urls=urls)) == DATA_SETS["mnist"].content_sha256


@pytest.mark.needs_data("cifar10")
def test_cifar10_is_cut_from_its_first_batch(server: Server, tmp_path: Path) -> None:
    with np.load(original("cifar10/cifar10.npz")) as arrays:
        planes = arrays["images"].transpose(0, 3, 1, 2).reshape(4_000, 3_072)
        batch = np.column_stack([arrays["labels"].astype(np.uint8), planes]).tobytes() + bytes(3_073)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as archive:
        info = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
        info.size = len(batch)
        archive.addfile(info, io.BytesIO(batch))
    made = fetch("cifar10", folder=tmp_path, urls=[server.offer("a.tar.gz", stream.getvalue())])
    assert content_digest(made) == DATA_SETS["cifar10"].content_sha256


@pytest.mark.needs_data("nursery")
def test_a_file_that_is_there_is_not_fetched_again(server: Server) -> None:
    folder = Path(os.environ["PLUMBOB_DATA"])
    assert fetch("nursery", folder=folder, urls=[f"http://127.0.0.1:{server.port}/a"]) == original(
        "nursery/nursery.csv.gz"
    )
    assert server.asked == 0


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (zipped({"nursery.data": b"usual,proper,complete,1,convenient,convenient,x,y,z\n"}), "content hash differs"),
        (zipped({"nursery.data": b"usual,proper\n"}), "not laid out as expected"),
        (zipped({"other.data": b"1,2\n"}), "not laid out as expected"),
        (b"no zip archive", "archive is damaged"),
    ],
)
def test_a_wrong_archive_is_refused_and_leaves_nothing(
    server: Server, tmp_path: Path, content: bytes, sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        fetch("nursery", folder=tmp_path, urls=[server.offer("a.zip", content)])
    assert left_behind(tmp_path) == []


def test_a_truncated_archive_leaves_nothing(server: Server, tmp_path: Path) -> None:
    url = server.offer("a.zip", b"x" * 100)
    server.announce = 200
    with pytest.raises(BadInput):
        fetch("nursery", folder=tmp_path, urls=[url])
    assert left_behind(tmp_path) == []


def test_a_failed_fetch_keeps_the_file_that_was_there(server: Server, tmp_path: Path) -> None:
    old = tmp_path / "nursery" / "nursery.csv.gz"
    old.parent.mkdir()
    old.write_bytes(b"mine")
    with pytest.raises(BadInput):
        fetch("nursery", folder=tmp_path, urls=[server.offer("a.zip", b"no zip archive")])
    assert old.read_bytes() == b"mine"


def test_a_built_in_set_has_nothing_to_fetch(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'breast' is built in"):
        fetch("breast", folder=tmp_path)


@pytest.mark.parametrize("name", ["credit", "linnaeus5", "news-sample", "yale"])
def test_a_set_without_an_official_source_says_why(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match=f"data set '{name}' cannot be fetched: .{{20,}}"):
        fetch(name, folder=tmp_path)


# conversion


def test_conversion_moves_the_label_last_and_gives_the_same_bytes_every_time(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(zipped({"deep/a.data.gz": gzip.compress(b"x  1.50\ny 2 \n\n")}))
    recipe = Recipe(("a.data",), " ", ("class", "size"))
    for name in ("one.csv.gz", "two.csv.gz"):
        convert_table(tmp_path / "a.zip", tmp_path / name, recipe, "class")
    assert gzip.decompress((tmp_path / "one.csv.gz").read_bytes()) == b"size,class\n1.50,x\n2,y\n"
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()


@pytest.mark.needs_data(parameter="file")
@pytest.mark.parametrize("file", [file for file, recipe in RECIPES.items() if recipe.columns])
def test_a_recipe_names_the_columns_of_its_file(file: str) -> None:
    label = next(entry.label for entry in DATA_SETS.values() if entry.file == file)
    with gzip.open(original(file), "rt") as stream:
        header = next(csv.reader(stream))
    assert [name for name in RECIPES[file].columns if name != label] + [label] == header


@pytest.mark.parametrize("name", [name for name, entry in DATA_SETS.items() if entry.kind == "table"])
def test_every_table_that_can_be_fetched_has_a_recipe(name: str) -> None:
    assert DATA_SETS[name].unfetchable or DATA_SETS[name].file in RECIPES


@pytest.mark.needs_data("news", "news-sample")
def test_the_left_out_news_columns_are_those_of_the_source() -> None:
    whole = list(read_frame(original("news/news_all_columns_sample.csv.gz")).columns)
    part = list(read_frame(original("news/news.csv.gz")).columns)
    assert [name for name in whole if name not in RECIPES["news/news.csv.gz"].without] == part
