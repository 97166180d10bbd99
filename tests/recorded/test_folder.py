"""Recordings in plain files: what is right becomes a transcript, what is wrong one sentence."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plumbob.attacks import attack_named
from plumbob.errors import BadInput
from plumbob.recorded.folder import read_recording
from plumbob.recorded.open_recording import open_recorded
from plumbob.recorded.seals import accuracy_of, defence_of
from plumbob.threats import THREATS, cut
from tests.worlds import training_world

ROWS = 80


def written(folder: Path, change: Callable[[dict[str, Any], Path], None] = lambda manifest, folder: None) -> Path:
    """A recording of one passive party, written by hand, with a change."""
    rng = np.random.default_rng(0)
    shop = np.column_stack([rng.normal(20, 5, ROWS), rng.integers(0, 9, ROWS), rng.integers(0, 2, ROWS)])
    folder.mkdir()
    np.save(folder / "bank.npy", rng.normal(size=(ROWS, 2)))
    np.save(folder / "shop.npy", shop)
    np.save(folder / "label.npy", rng.integers(0, 2, ROWS))
    np.save(folder / "rows.npy", np.arange(ROWS))
    np.save(folder / "embeddings.npy", (shop @ rng.normal(size=(3, 5)) + 1).astype(np.float32))
    features = [{"party": "bank", "name": name} for name in ("age", "income")]
    features += [{"party": "shop", "name": name} for name in ("basket", "visits", "member")]
    asked = {"sender": "bank", "receiver": "shop", "phase": "predict", "round": 0, "name": "rows", "file": "rows.npy"}
    sent = {"sender": "shop", "receiver": "bank", "phase": "predict", "round": 0, "name": "embeddings"}
    manifest = {
        "kind": "recording",
        "version": 1,
        "protocol": "split_network",
        "active": "bank",
        "parties": ["bank", "shop"],
        "features": features,
        "classes": ["no", "yes"],
        "columns": {"bank": "bank.npy", "shop": "shop.npy"},
        "label": "label.npy",
        "messages": [asked, {**sent, "file": "embeddings.npy"}],
    }
    change(manifest, folder)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_files_become_a_transcript_that_is_attacked(tmp_path: Path) -> None:
    path = written(tmp_path / "run")
    log = open_recorded(path)
    assert [m.name for m in log.messages] == ["rows", "embeddings"]
    assert [f.name for f in log.features][2:] == ["shop.basket", "shop.visits", "shop.member"]
    raw = np.load(path / "shop.npy")
    assert np.allclose(log.sealed("shop")["columns"], (raw - raw.min(axis=0)) / np.ptp(raw, axis=0))
    guess = attack_named("binary_columns").run(cut(log, THREATS["active-training"]), np.random.default_rng(0))
    assert np.array_equal(np.abs(guess.vectors[:, 0] - guess.vectors[0, 0]), np.abs(raw[:, 2] - raw[0, 2]))


def test_accuracy_defence_and_notes_are_taken_over(tmp_path: Path) -> None:
    def more(manifest: dict[str, Any], folder: Path) -> None:
        manifest["accuracy"] = 0.75
        manifest["defence"] = {"gaussian_masking": {"sigma": 0.5}}
        manifest["notes"] = {"bank": {"embeddings": "embeddings.npy"}}

    log = open_recorded(written(tmp_path / "run", more))
    assert accuracy_of(log) == 0.75
    assert defence_of(log) == "gaussian_masking"
    assert cut(log, THREATS["active-training"]).notes["embeddings"].shape == (ROWS, 5)


def test_arrays_in_column_order_and_files_in_subfolders_are_read(tmp_path: Path) -> None:
    def moved(manifest: dict[str, Any], folder: Path) -> None:
        (folder / "arrays").mkdir()
        np.save(folder / "arrays" / "z.npy", np.asfortranarray(np.load(folder / "embeddings.npy")))
        manifest["messages"][1]["file"] = "arrays/z.npy"

    log = read_recording(written(tmp_path / "run", moved))
    assert np.array_equal(log.messages[1].payload, np.load(tmp_path / "run" / "embeddings.npy"))


def test_saved_transcripts_are_opened_too(tmp_path: Path) -> None:
    log = training_world("split_network")
    for path in (tmp_path / "folder", tmp_path / "run.zip"):
        log.save(path)
        assert open_recorded(path).head == log.head


def put(*keys: Any, value: Any) -> Callable[[dict[str, Any], Path], None]:
    def change(manifest: dict[str, Any], folder: Path) -> None:
        place: Any = manifest
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value

    return change


def without(key: str) -> Callable[[dict[str, Any], Path], None]:
    return lambda manifest, folder: manifest.pop(key) and None


def array(name: str, make: Callable[[np.ndarray], np.ndarray]) -> Callable[[dict[str, Any], Path], None]:
    return lambda manifest, folder: np.save(folder / name, make(np.load(folder / name)))


def raw_bytes(name: str, data: bytes) -> Callable[[dict[str, Any], Path], None]:
    return lambda manifest, folder: (folder / name).write_bytes(data) and None


def pickled(manifest: dict[str, Any], folder: Path) -> None:
    np.save(folder / "embeddings.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)


def linked(manifest: dict[str, Any], folder: Path) -> None:
    outside = folder.parent / "outside.npy"
    np.save(outside, np.zeros((ROWS, 5)))
    (folder / "link.npy").symlink_to(outside)
    manifest["messages"][1]["file"] = "link.npy"


def huge_header() -> bytes:
    """A header that announces a terabyte, and nothing behind it."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (2**37,)})
    return buffer.getvalue()


def nan(cells: np.ndarray) -> np.ndarray:
    cells[3, 0] = np.nan
    return cells


FILE = ("messages", 1, "file")
WRONG = {
    "no kind": (without("kind"), "expected a manifest of kind 'recording' and version 1"),
    "version": (put("version", value=2), "got 'recording' of version 2"),
    "missing key": (without("features"), "'features' is missing"),
    "unknown key": (put("colums", value={}), "'colums' is not a key; did you mean 'columns'"),
    "type": (put("parties", value="bank"), "'parties' has the wrong type, str"),
    "protocol": (put("protocol", value="secure_boost"), "expected one of split_network"),
    "active": (put("active", value="museum"), "expected one of bank, shop, got 'museum'"),
    "parties": (put("parties", value=["bank", "bank"]), "at least two different names"),
    "classes": (put("classes", value=["yes"]), "at least two different names"),
    "feature": (put("features", 0, "party", value="museum"), "got 'museum'"),
    "features": (put("features", 4, "party", value="bank"), "expected a table of 3 columns"),
    "columns": (put("columns", value={"bank": "bank.npy"}), "'shop' has features but no file"),
    "label": (array("label.npy", lambda label: label + 5), "one whole number from 0 to 1"),
    "label short": (array("label.npy", lambda label: label[:9]), "align them first"),
    "sender": (put("messages", 1, "sender", value="museum"), "expected one of bank, shop, coordinator"),
    "phase": (put("messages", 1, "phase", value="later"), "expected one of align, setup"),
    "round": (put("messages", 1, "round", value=-1), "a round of 0 or more"),
    "round as text": (put("messages", 1, "round", value="0"), "'round' has the wrong type"),
    "message": (put("messages", 1, value=7), "expected keys and values"),
    "path up": (put(*FILE, value="../embeddings.npy"), "the name of a .npy file in the folder"),
    "absolute path": (put(*FILE, value="/etc/embeddings.npy"), "the name of a .npy file in the folder"),
    "link": (linked, "leads out of the folder"),
    "missing file": (put(*FILE, value="none.npy"), "'none.npy' is missing"),
    "folder as file": (
        lambda manifest, folder: (folder / "x.npy").mkdir() or put(*FILE, value="x.npy")(manifest, folder),
        "expected a regular file",
    ),
    "pipe as file": (
        lambda manifest, folder: os.mkfifo(folder / "x.npy") or put(*FILE, value="x.npy")(manifest, folder),
        "expected a regular file",
    ),
    "pickle": (pickled, "contains object, expected numbers"),
    "text": (array("embeddings.npy", lambda cells: cells.astype(str)), "expected numbers"),
    "no array": (raw_bytes("embeddings.npy", b"hello"), "is not a NumPy array file"),
    "header only": (raw_bytes("embeddings.npy", huge_header()), "declares 1,099,511,627,776 bytes but has 0"),
    "nan": (array("embeddings.npy", nan), "contains NaN or infinity"),
    "nan in columns": (array("shop.npy", nan), "contains NaN or infinity"),
    "too few rows": (array("embeddings.npy", lambda cells: cells[:9]), r"expected 80 rows, got shape \(9, 5\)"),
    "one number a row": (array("embeddings.npy", lambda cells: cells[:, 0]), "expected tables of equal width"),
    "whole numbers": (array("embeddings.npy", lambda cells: cells.astype(int)), "floating-point numbers"),
    "other order": (array("rows.npy", lambda rows: rows[::-1]), "in the order of the columns"),
    "no embeddings": (put("messages", 1, "name", value="outputs"), "no message 'embeddings'"),
    "accuracy": (put("accuracy", value=74), "a share from 0 to 1"),
    "defence": (put("defence", value={"noise": {}}), "'noise' is not a defence of the cut layer"),
    "setting": (put("defence", value={"gaussian_masking": {"sigmas": 1}}), "no setting 'sigmas'"),
    "note": (put("notes", value={"bank": {"embeddings": 3}}), "the name of a .npy file"),
    "notes": (put("notes", value={"bank": ["embeddings.npy"]}), "expected files by name"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_one_sentence(case: str, tmp_path: Path) -> None:
    change, words = WRONG[case]
    with pytest.raises(BadInput, match=words) as caught:
        open_recorded(written(tmp_path / "run", change))
    assert str(caught.value).startswith(str(tmp_path / "run"))


def test_more_than_the_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="more than the limit of 1,000 bytes"):
        read_recording(written(tmp_path / "run"), limit=1_000)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"kind": NaN}', "[" * 100_000])
def test_a_manifest_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    path = written(tmp_path / "run")
    (path / "manifest.json").write_text(text)
    with pytest.raises(BadInput, match="manifest"):
        open_recorded(path)


def test_a_folder_without_a_manifest_and_a_file_that_is_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"manifest\.json is missing"):
        open_recorded(tmp_path)
    with pytest.raises(BadInput, match="does not exist"):
        open_recorded(tmp_path / "none.zip")
