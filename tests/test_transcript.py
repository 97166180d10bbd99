"""Transcripts are append-only, chained, and come back whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from plumbob.errors import BadInput
from plumbob.transcript import Transcript
from tests.worlds import world


def edited(path: Path, change) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    change(manifest["meta"], manifest["arrays"])
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_a_saved_transcript_comes_back(tmp_path: Path) -> None:
    log = world()
    for path in (tmp_path / "t", tmp_path / "t.zip"):
        log.save(path)
        back = Transcript.load(path)
        assert [m.header for m in back.messages] == [m.header for m in log.messages]
        assert all(np.array_equal(a.payload, b.payload) for a, b in zip(back.messages, log.messages, strict=True))
        assert back.messages[-1].link == log.messages[-1].link
        assert back.features == log.features
        assert np.array_equal(back.sealed("passive")["columns"], log.sealed("passive")["columns"])


def drop_last(meta: dict, arrays: dict) -> None:
    meta["messages"].pop()
    del arrays[f"message/{len(meta['messages'])}"]


def drop_first(meta: dict, arrays: dict) -> None:
    meta["messages"].pop(0)
    last = len(meta["messages"])
    for i in range(last):
        arrays[f"message/{i}"] = arrays[f"message/{i + 1}"]
    del arrays[f"message/{last}"]


def swap(meta: dict, arrays: dict) -> None:
    meta["messages"][0], meta["messages"][1] = meta["messages"][1], meta["messages"][0]
    arrays["message/0"], arrays["message/1"] = arrays["message/1"], arrays["message/0"]


def rename(meta: dict, arrays: dict) -> None:
    meta["messages"][0]["receiver"] = "passive"


def forget(meta: dict, arrays: dict) -> None:
    del arrays["message/0"]


@pytest.mark.parametrize("change", [drop_last, drop_first, swap, rename, forget])
def test_a_missing_moved_or_renamed_message_is_refused(tmp_path: Path, change) -> None:
    world().save(tmp_path / "t")
    edited(tmp_path / "t", change)
    with pytest.raises(BadInput):
        Transcript.load(tmp_path / "t")


@pytest.mark.parametrize("key", ["protocol", "features", "messages", "sealed", "head", "parties"])
def test_a_manifest_without_a_key_is_one_sentence(tmp_path: Path, key: str) -> None:
    world().save(tmp_path / "t")
    edited(tmp_path / "t", lambda meta, arrays: meta.pop(key))
    with pytest.raises(BadInput):
        Transcript.load(tmp_path / "t")


def test_what_was_received_cannot_be_changed() -> None:
    log = Transcript("toy", "a", ("a", "b"), (), ())
    sent = np.zeros(3)
    received = log.send("a", "b", "predict", 0, "x", sent)
    sent[0] = 7
    assert received[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        received[0] = 1


def test_sealing_twice_and_unknown_parties_are_refused() -> None:
    log = Transcript("toy", "a", ("a", "b"), (), ())
    log.seal("a", "columns", np.zeros(1))
    with pytest.raises(BadInput, match="append-only"):
        log.seal("a", "columns", np.ones(1))
    with pytest.raises(BadInput, match="no party 'c'"):
        log.send("a", "c", "predict", 0, "x", np.zeros(1))


def test_a_view_is_not_a_transcript(tmp_path: Path) -> None:
    from plumbob.threats import LUO2021, View, cut

    cut(world(), LUO2021).save(tmp_path / "v")
    with pytest.raises(BadInput, match="expected a transcript, got 'view'"):
        Transcript.load(tmp_path / "v")
    world().save(tmp_path / "t")
    with pytest.raises(BadInput, match="expected a view, got 'transcript'"):
        View.load(tmp_path / "t")
