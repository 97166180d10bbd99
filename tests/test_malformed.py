"""Whatever stands where a file is expected: one sentence, exit code 2, below 1 GB of memory and 5 processor seconds.

Pipes, devices and sockets, files that unpack to gigabytes, paths that are none, recordings and networks beyond the stated limits.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import plumbob
from plumbob import memory
from plumbob.errors import BadInput
from plumbob.files import open_regular, read_regular, write_whole
from plumbob.formats.sklearn_estimators import check_unpacked
from plumbob.view.runs import Runs
from tests.commands import measured
from tests.fuzz import special
from tests.fuzz.special import Special, put
from tests.recorded.test_folder import written
from tests.test_cli import OWN, two_files
from tests.worlds import made_table, world

MOST_MB, MOST_SECONDS = 1_000, 5.0
FREE = {memory.VARIABLE: "1000"}  # bombs of a few megabytes do on a machine of any size
PARTIES = ("--party", "bank={bank}", "--party", "shop=shop.csv", "--id", "id", "--label", "default", "--force")
INIT = ("init", *PARTIES)
SAMPLE = (*INIT, "--sample", "60")


def refused(words: tuple[str, ...], cwd: Path) -> str:
    """The sentence of a command that must refuse, and soon."""
    done, spent = measured(*words, cwd=cwd, env=os.environ | FREE, timeout=100)
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, ""), done.stderr
    assert done.stderr.startswith("plumbob: ")
    assert spent.peak_mb < MOST_MB
    assert spent.seconds < MOST_SECONDS
    assert len(done.stderr) < 600
    return done.stderr


def a_recording(folder: Path, name: str, content: special.Content) -> None:
    run = written(folder / "run")
    (run / name).unlink()
    put(run / name, content)


def a_bundle(folder: Path, name: str, content: special.Content) -> None:
    world(table=made_table(rows=60, columns=4)).save(folder / "run")
    (folder / "run" / name).unlink()
    put(folder / "run" / name, content)


def in_place(folder: Path, name: str, content: special.Content) -> None:
    put(folder / name, content)


def a_store(folder: Path, name: str, content: special.Content) -> None:
    put(folder / name, content)
    (folder / "plan.yaml").write_text(OWN)


# Where a file is read: the command, what is there beside it, and the file's name
PLACES: dict[str, tuple[tuple[str, ...], Callable[[Path, str, special.Content], None], str]] = {
    "plan": (("audit", "plan.yaml"), in_place, "plan.yaml"),
    "csv": (INIT, in_place, "table.csv"),
    "gzip": (INIT, in_place, "table.csv.gz"),
    "parquet": (INIT, in_place, "table.parquet"),
    "sampled csv": (SAMPLE, in_place, "table.csv"),
    "sampled parquet": (SAMPLE, in_place, "table.parquet"),
    "array": (("audit", "--recorded", "run"), a_recording, "label.npy"),
    "manifest": (("audit", "--recorded", "run"), a_recording, "manifest.json"),
    "member": (("audit", "--recorded", "run"), a_bundle, "000000.npy"),
    "bundle": (("audit", "--recorded", "run.zip"), in_place, "run.zip"),
    "model": (("init", "--data", "breast", "--model", "m.onnx"), in_place, "m.onnx"),
    "findings": (("audit", "plan.yaml", "--out", "out"), a_store, "out/findings.jsonl"),
    "kept plan": (("audit", "plan.yaml", "--out", "out"), a_store, "out/plan.yaml"),
    "store": (("audit", "plan.yaml", "--store", "store"), a_store, "store/store.json"),
}
SPECIALS = [(place, "pipe", "a pipe") for place in PLACES]
SPECIALS += [(place, "device", "a device") for place in ("plan", "csv", "gzip", "parquet", "sampled csv", "model")]
SPECIALS += [("array", "device", "leads out of the folder")]
SPECIALS += [(place, "socket", "a socket") for place in ("plan", "csv", "bundle")]
SPECIALS += [("plan", "loop", "links"), ("array", "loop", "cannot be read"), ("csv", "loop", "no file")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    two_files(tmp_path)
    return tmp_path


def at(place: str, content: special.Content, folder: Path, name: str = "") -> str:
    words, make, usual = PLACES[place]
    make(folder, name or usual, content)
    return refused(tuple(word.replace("{bank}", name or usual) for word in words), folder)


@pytest.mark.parametrize(("place", "kind", "words"), SPECIALS)
def test_only_regular_files_are_opened(place: str, kind: str, words: str, folder: Path) -> None:
    assert words in at(place, Special(kind), folder)


def free(content: special.Content) -> special.Content:
    return content


BOMBS: list[tuple[str, str, Callable[[], special.Content], str]] = [
    ("gzip", "", lambda: special.gzips()[0], "GB of memory and 1.0 GB are free"),
    ("gzip", "", lambda: special.gzips()[1], "GB of memory and 1.0 GB are free"),
    ("gzip", "", lambda: special.gzips()[2], "GB of memory and 1.0 GB are free"),
    ("sampled csv", "table.csv.gz", lambda: special.gzips()[1], "to choose a sample, 'table.csv.gz' needs about"),
    ("sampled csv", "table.csv.gz", lambda: special.gzips()[2], "has a line of more than 16,777,216 characters"),
    ("parquet", "", lambda: special.parquets()[0], "needs about 1,048.6 GB of memory and 1.0 GB are free"),
    ("parquet", "", lambda: special.parquets()[1], "GB of memory and 1.0 GB are free"),
    ("parquet", "", lambda: special.parquets()[2], "GB of memory and 1.0 GB are free"),
    ("sampled parquet", "", lambda: special.parquets()[0], "GB of memory and 1.0 GB are free"),
    ("sampled parquet", "", lambda: special.parquets()[2], "GB of memory and 1.0 GB are free"),
    ("array", "", lambda: special.arrays()[0], "the recording up to 'label.npy' needs about 32.0 GB of memory"),
    ("manifest", "", special.brackets, "this JSON needs about 2.1 GB of memory"),
    ("bundle", "", lambda: special.zips()[0], "needs about 17.2 GB of memory and 1.0 GB are free"),
    ("bundle", "", lambda: special.zips()[1], "is 134,217,728 bytes, expected at most"),
    ("bundle", "", lambda: special.zips()[2], "this JSON needs about 2.1 GB of memory"),
    ("bundle", "", lambda: special.zips()[3], "cannot be read"),
    ("model", "m.pt", lambda: special.zips()[1], "its members are compressed, which torch.save never does"),
    ("model", "m.json", special.brackets, "this JSON needs about 2.1 GB of memory"),
    ("model", "", lambda: Special("sparse", 2**33), "is larger than 200 MB"),
    ("plan", "", lambda: Special("sparse", 2**33), "is larger than 1 MB"),
    ("csv", "", lambda: Special("sparse", 2**33), "needs about 85.9 GB of memory and 1.0 GB are free"),
    ("csv", "", lambda: Special("sparse", 2**26), "it contains NUL bytes"),
    ("findings", "", lambda: Special("sparse", 2**33), "not empty and holds no audit"),
]


@pytest.mark.parametrize(("place", "name", "content", "words"), BOMBS)
def test_what_unpacks_to_gigabytes_is_refused_with_what_it_needs(
    place: str, name: str, content: Callable[[], special.Content], words: str, folder: Path
) -> None:
    if name.startswith("m."):
        in_place(folder, name, content())
        assert words in refused(("init", "--data", "breast", "--model", name), folder)
        return
    assert words in at(place, content(), folder, name)


LONG = "x" * 5_000
PATHS = [
    ("audit", LONG),
    ("audit", "--recorded", LONG),
    ("audit", "--out", LONG),
    ("audit", "--store", LONG),
    ("view", LONG),
    ("init", "--data", "breast", "--out", LONG),
    ("init", "--data", "breast", "--model", f"{LONG}.onnx"),
    tuple(word.replace("{bank}", f"{LONG}.csv") for word in INIT),
    ("audit", "file/x"),
    ("audit", "--recorded", "file/x"),
    ("audit", "--out", "file/x"),
    ("audit", "--store", "loop/x"),
    ("audit", "--recorded", "loop"),
    ("view", "loop"),
]


@pytest.mark.parametrize("words", PATHS, ids=lambda words: f"{' '.join(words)[:40]}")
def test_a_path_that_leads_nowhere_is_bad_input(words: tuple[str, ...], folder: Path) -> None:
    (folder / "file").write_text("x")
    (folder / "loop").symlink_to("loop")
    named = next(word for word in reversed(words) if word[0] in "xfl" or "=" in word).partition("=")[2] or words[-1]
    sentence = refused(words, folder)
    assert named[:40] in sentence or "path" in sentence


@pytest.mark.parametrize("path", [LONG, "a\0b", "/dev/zero"])
@pytest.mark.parametrize("use", ["out", "plan", "transcript", "view", "runs", "party"])
def test_the_same_in_python(use: str, path: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    uses: dict[str, Callable[[], object]] = {
        "out": lambda: plumbob.audit({"data": "breast", "trials": 1, "rows": 50}, out=path),
        "plan": lambda: plumbob.audit(path),
        "transcript": lambda: plumbob.Transcript.load(path),
        "view": lambda: plumbob.View.load(Path(path)),
        "runs": lambda: Runs(Path(path)),
        "party": lambda: plumbob.audit(bank=path, shop="shop.csv", id="id", label="default"),
    }
    with pytest.raises(BadInput):
        uses[use]()


def test_a_recording_of_a_hundred_thousand_messages_is_refused_before_any_is_read(folder: Path) -> None:
    def more(manifest: dict[str, Any], _: Path) -> None:
        manifest["messages"] = [manifest["messages"][0]] * 100_000

    written(folder / "run", more)
    assert "100,000 messages and notes, at most 50,000 are read" in refused(("audit", "--recorded", "run"), folder)


@pytest.mark.parametrize(
    ("protocol", "count"),
    [
        ("{name: neural_network, settings: {hidden: [100000, 100000]}}", "10,000,000,000"),
        ("{name: neural_network, settings: {hidden: [100000, 500]}}", "50,401,000"),
        ("{name: split_network, settings: {hidden: [8000, 8000]}}", "64,000,000"),
        ("{name: split_network, settings: {hidden: [6000], cut: 3}}", "72,000,000"),
    ],
)
def test_a_network_of_huge_layers_is_refused_before_it_is_made(protocol: str, count: str, folder: Path) -> None:
    (folder / "plan.yaml").write_text(f"{OWN.replace('attacks', '# ')}protocols: [{protocol}]\n")
    sentence = refused(("audit", "plan.yaml", "--estimate"), folder)
    assert f"these layers have {count} weights, at most 50,000,000 are trained" in sentence


@pytest.mark.parametrize("change", ["complex", "sparse", "protocol"])
def test_no_warning_of_torch_stands_above_the_sentence(change: str, folder: Path) -> None:
    import torch

    state: dict[str, Any] = dict(torch.nn.Linear(4, 3).state_dict())
    if change == "complex":
        state["weight"] = state["weight"].to(torch.complex64)
    if change == "sparse":
        state["weight"] = state["weight"].to_sparse()
    torch.save(state, folder / "m.pt", pickle_protocol=5 if change == "protocol" else 2)
    words = "more than weights" if change == "protocol" else "expected a plain tensor of real numbers"
    assert words in refused(("init", "--data", "breast", "--model", "m.pt"), folder)


@pytest.mark.parametrize(("ignored", "what"), [("default", "the label"), ("id", "the id column")])
def test_the_label_and_the_id_cannot_be_ignored(ignored: str, what: str, folder: Path) -> None:
    (folder / "plan.yaml").write_text(OWN.replace("label: default", f"label: default\n  ignore: [{ignored}]"))
    assert f"'ignore' names {what} '{ignored}'" in refused(("audit", "plan.yaml"), folder)
    words = (*(word.replace("{bank}", "bank.csv") for word in INIT), "--ignore", ignored)
    assert f"'ignore' names {what} '{ignored}'" in refused(words, folder)


# One by one


def test_pages_that_are_larger_than_the_metadata_say_are_refused(folder: Path) -> None:
    """The footer is rewritten: it says that a column of 80 MB unpacks to nearly nothing."""
    import pyarrow
    import pyarrow.parquet

    from plumbob.data import parquet

    path = folder / "lie.parquet"
    cells = pyarrow.table({"a": np.zeros(10**6)})
    pyarrow.parquet.write_table(cells, path, use_dictionary=False, compression="zstd", write_statistics=False)
    chunk = pyarrow.parquet.ParquetFile(path).metadata.row_group(0).column(0)

    def varint(value: int) -> bytes:
        value, found = 2 * value, b""
        while value > 127:
            found, value = found + bytes([value & 127 | 128]), value >> 7
        return found + bytes([value])

    true = varint(chunk.total_uncompressed_size)
    assert len(parquet.read(path)) == 10**6
    assert parquet.need(path) > 8 * 10**6
    path.write_bytes(path.read_bytes().replace(true, bytes([0x90 | 0x80]) + b"\x80" * (len(true) - 2) + b"\x01"))
    with pytest.raises(BadInput, match="not a readable Parquet file"):
        parquet.need(path)


def test_members_of_a_model_are_counted(folder: Path) -> None:
    import zipfile

    with zipfile.ZipFile(folder / "m.skops", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("small", b"x" * 1000)
    data = (folder / "m.skops").read_bytes()
    check_unpacked(data)
    with pytest.raises(BadInput, match=r"its members unpack to 4,026,531,840 bytes, at most"):
        check_unpacked(data.replace((1000).to_bytes(4, "little"), (15 * 2**28).to_bytes(4, "little")))


def test_a_pipe_beside_a_file_that_is_written_does_not_hold_it_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".a.txt.part")
    write_whole(tmp_path / "a.txt", "all of it")
    assert (tmp_path / "a.txt").read_text() == "all of it"


def test_a_file_is_judged_when_it_is_open(tmp_path: Path) -> None:
    """A path that is a file when it is looked at and a pipe when it is opened."""
    (tmp_path / "a").write_text("x")
    assert (tmp_path / "a").is_file()
    (tmp_path / "a").unlink()
    os.mkfifo(tmp_path / "a")
    for append in (False, True):
        with pytest.raises(BadInput, match="is a pipe; expected a regular file"):
            open_regular(tmp_path / "a", append=append)


def test_a_file_that_says_it_is_empty_is_read_no_further_than_its_limit() -> None:
    if not Path("/proc/self/maps").exists():
        pytest.skip("no /proc here")
    with pytest.raises(BadInput, match="is larger than 100 bytes"):
        read_regular("/proc/self/maps", most=100)


def test_files_that_are_large_and_honest_are_read(folder: Path) -> None:
    """The same ways as bombs, in moderation: a dictionary of texts, runs of a number, gzip that packs well."""
    from plumbob.data.files import read_frame

    frame = pd.DataFrame({"id": range(50_000), "word": ["some word"] * 50_000, "none": [0.0] * 50_000})
    frame.to_parquet(folder / "t.parquet")
    frame.to_csv(folder / "t.csv.gz", index=False)
    for name in ("t.parquet", "t.csv.gz"):
        read = read_frame(folder / name)
        assert read.shape == (50_000, 3)
        assert read["word"].tolist() == frame["word"].tolist()
