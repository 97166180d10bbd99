"""Targets that read recorded runs: transcripts and views as bundles, and recordings in plain files.

Most of the damaged bundles are sealed again (checksums, the chain of hashes), so that what lies behind those checks is reached.
"""

from __future__ import annotations

import json
import random
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from plumbob import bundle
from plumbob.recorded.open_recording import federation_in, open_recorded
from plumbob.recorded.seals import accuracy_of, defence_of, remarks_of
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import _GENESIS, Transcript, _link
from tests.fuzz import mutate
from tests.fuzz.guard import Files
from tests.recorded.test_folder import written
from tests.worlds import made_table, world

Parts = tuple[dict[str, Any], dict[str, np.ndarray]]
CURIOUS = ("active", "active-training", "active-black-box", "coordinator", "passive-training")


@cache
def _logs() -> tuple[Transcript, ...]:
    table = made_table(rows=60, columns=4)
    recorded = open_recorded(written(Path(tempfile.mkdtemp()) / "run"))
    return world("logistic_regression", table), world("decision_tree", table), recorded


@cache
def _bundles(kind: str) -> tuple[Parts, ...]:
    """Metadata and arrays of valid examples."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for i, log in enumerate(_logs()):
            place = Path(folder) / f"{kind}{i}.zip"
            threat = THREATS["active-training" if i == 2 else "active"]
            log.save(place) if kind == "transcript" else cut(log, threat).save(place)
            found.append(bundle.load(place))
    return tuple(found)


def make_bundle(rng: random.Random, kind: str) -> Files:
    """A bundle as one zip file or as a folder."""
    meta, arrays = rng.choice(_bundles(kind))
    way = rng.randrange(8)
    if way in (1, 2, 3, 7):
        meta = mutate.changed(rng, meta)
    arrays = dict(arrays)
    for _ in range(rng.choice((1, 1, 2)) if way in (4, 5, 6, 7) else 0):
        name = rng.choice(list(arrays))
        arrays[name] = mutate.array(rng, arrays[name])
    if rng.random() < 0.2:
        name = rng.choice(list(arrays))
        arrays[str(rng.choice((*mutate.WORDS, *arrays)))] = arrays.pop(name)
    if rng.random() < 0.7:
        _chain(meta, arrays)
    entries, members = {}, {}
    for i, (name, values) in enumerate(arrays.items()):
        file = f"{i:06d}.npy"
        about = {"dtype": values.dtype.str, "shape": list(values.shape), "sha256": bundle.digest(values)}
        entries[name], members[file] = {"file": file} | about, mutate.npy(values)
    manifest: Any = {"format": 1, "meta": meta, "arrays": entries}
    if way == 0:
        manifest = mutate.changed(rng, manifest)
    members["manifest.json"] = mutate.json_bytes(rng, manifest)
    if rng.random() < 0.15:
        name = rng.choice(list(members))
        members[name] = mutate.damaged(rng, members[name], rng.choice(list(members.values())))
    if rng.random() < 0.2:
        return {f"run/{name}": data for name, data in members.items()}
    packed = mutate.zipped(members, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return {"run.zip": mutate.damaged(rng, packed, packed) if rng.random() < 0.2 else packed}


def _chain(meta: Any, arrays: dict[str, np.ndarray]) -> None:
    """Hashes that fit what the messages are now, as far as there are messages."""
    link = _GENESIS
    try:
        for i, entry in enumerate(meta["messages"]):
            header = {key: entry[key] for key in ("sender", "receiver", "phase", "round", "name")}
            link = _link(link, header, entry.get("whole", "") + bundle.digest(arrays[f"message/{i}"]))
            if entry.get("link"):
                entry["link"] = link
        if "head" in meta:
            meta["head"] = link
    except (KeyError, TypeError, AttributeError, ValueError):
        return


def _run(folder: Path) -> Path:
    return folder / ("run.zip" if (folder / "run.zip").exists() else "run")


def make_transcript(rng: random.Random) -> Files:
    return make_bundle(rng, "transcript")


def read_transcript(folder: Path) -> None:
    _judgeable(_run(folder))


def _judgeable(path: Path) -> None:
    """What an audit of a recorded run reads before it attacks."""
    log = open_recorded(path)
    federation_in(log)
    defence_of(log), accuracy_of(log), remarks_of(log), log.bytes_by_party()
    for name in CURIOUS:
        cut(log, THREATS[name])


def make_view(rng: random.Random) -> Files:
    return make_bundle(rng, "view")


def read_view(folder: Path) -> None:
    View.load(_run(folder))


@cache
def _plain_files() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        place = written(Path(folder) / "run", _more)
        return {path.name: path.read_bytes() for path in place.iterdir()}


def _more(manifest: dict[str, Any], folder: Path) -> None:
    manifest["accuracy"] = 0.75
    manifest["defence"] = {"gaussian_masking": {"sigma": 0.5}}
    manifest["notes"] = {"bank": {"embeddings": "embeddings.npy"}}


def make_recording(rng: random.Random) -> Files:
    files = dict(_plain_files())
    if rng.random() < 0.6:
        manifest = mutate.changed(rng, json.loads(files["manifest.json"]))
        files["manifest.json"] = mutate.json_bytes(rng, manifest)
    else:
        name = rng.choice([name for name in sorted(files) if name.endswith(".npy")])
        with tempfile.SpooledTemporaryFile() as file:
            file.write(files[name])
            file.seek(0)
            files[name] = mutate.npy(mutate.array(rng, np.load(file)))
    if rng.random() < 0.3:
        name = rng.choice(sorted(files))
        files[name] = mutate.damaged(rng, files[name], files["label.npy"])
    if rng.random() < 0.05:
        del files[rng.choice(sorted(files))]
    return {f"run/{name}": data for name, data in files.items()} | ({} if files else {"run/x": b""})


def read_recording(folder: Path) -> None:
    _judgeable(folder / "run")
