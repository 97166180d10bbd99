"""Bundles come back as they were written, or not at all."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from plumbob import bundle
from plumbob.errors import BadInput

KINDS = st.sampled_from(["float64", "float32", "int64", "uint8", "bool", "int16"])


def written(folder: Path, ending: str = "") -> Path:
    path = folder / f"b{ending}"
    bundle.save(path, {"kind": "test"}, {"a": np.arange(6.0).reshape(2, 3), "b": np.array([1, 2], dtype=np.uint8)})
    return path


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.text(max_size=20), KINDS.flatmap(lambda kind: arrays(kind, array_shapes(min_dims=0, max_side=4))), max_size=4
    ),
    st.sampled_from(["", ".zip"]),
)
def test_what_is_saved_comes_back(tmp_path_factory: pytest.TempPathFactory, given_arrays: dict, ending: str) -> None:
    path = tmp_path_factory.mktemp("bundle") / f"b{ending}"
    bundle.save(path, {"x": 1}, given_arrays)
    meta, back = bundle.load(path)
    assert meta == {"x": 1}
    assert list(back) == list(given_arrays)
    for name, array in given_arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("member", ["000000.npy", "000001.npy"])
def test_every_changed_byte_is_refused(tmp_path: Path, member: str) -> None:
    path = written(tmp_path)
    original = (path / member).read_bytes()
    for position in range(len(original)):
        changed = bytearray(original)
        changed[position] ^= 0x11
        (path / member).write_bytes(bytes(changed))
        with pytest.raises(BadInput):
            bundle.load(path)


def test_a_missing_array_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    (path / "000001.npy").unlink()
    with pytest.raises(BadInput, match=r"000001\.npy is missing"):
        bundle.load(path)


@pytest.mark.parametrize(
    "place", ["../secret.npy", "/etc/passwd", "a/../../x.npy", "000000.npy/../000001.npy", "", 7, None]
)
def test_a_path_that_climbs_out_is_refused(tmp_path: Path, place: object) -> None:
    path = written(tmp_path)
    np.save(tmp_path / "secret.npy", np.arange(6.0).reshape(2, 3))
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["arrays"]["a"]["file"] = place
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="outside the bundle"):
        bundle.load(path)


def test_a_link_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    (path / "000000.npy").rename(tmp_path / "elsewhere.npy")
    (path / "000000.npy").symlink_to(tmp_path / "elsewhere.npy")
    with pytest.raises(BadInput, match="is a link"):
        bundle.load(path)


def test_an_announced_bomb_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = written(tmp_path)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["arrays"]["a"]["shape"] = [2**30, 2**10]
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="more than the limit"):
        bundle.load(path)


def test_a_zip_bomb_is_refused_although_its_manifest_says_little(tmp_path: Path) -> None:
    path = written(tmp_path, ".zip")
    with zipfile.ZipFile(path) as archive:
        manifest = archive.read("manifest.json")
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", manifest)
        archive.writestr("000000.npy", b"\0" * 50_000_000)
        archive.writestr("000001.npy", b"\0")
    assert bomb.stat().st_size < 100_000
    with pytest.raises(BadInput, match="expected at most"):
        bundle.load(bomb)


def test_a_header_that_promises_more_than_there_is_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path)
    raw = io.BytesIO()
    np.lib.format.write_array_header_1_0(raw, {"descr": "<f8", "fortran_order": False, "shape": (2, 10**9)})
    (path / "000000.npy").write_bytes(raw.getvalue() + b"\0" * 48)
    with pytest.raises(BadInput, match="does not match the array described in the manifest"):
        bundle.load(path)


def test_objects_are_neither_written_nor_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="expected numbers"):
        bundle.save(tmp_path / "o", {}, {"a": np.array([{}], dtype=object)})
    path = written(tmp_path)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["arrays"]["a"]["dtype"] = "|O"
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="invalid entry"):
        bundle.load(path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "meta": 3, "arrays": {}}', "[" * 100_000, "\xff"]
)
def test_a_broken_manifest_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = written(tmp_path)
    (path / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(BadInput):
        bundle.load(path)


def test_a_damaged_zip_is_one_sentence(tmp_path: Path) -> None:
    path = written(tmp_path, ".zip")
    data = bytearray(path.read_bytes())
    for position in range(40, len(data), 7):
        changed = bytearray(data)
        changed[position] ^= 0xFF
        path.write_bytes(bytes(changed))
        try:
            bundle.load(path)  # a byte that carries nothing (a date) may change
        except BadInput:
            continue


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(BadInput, match="already exists"):
        bundle.save(path, {}, {})


def test_what_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        bundle.load(tmp_path / "nothing")
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(BadInput, match="not a bundle"):
        bundle.load(tmp_path / "text.zip")
