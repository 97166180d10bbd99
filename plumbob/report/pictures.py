"""Contact sheets: the real pictures above the recovered ones, as a PNG that is written here.

Only the pixels that were unknown are shown; those that the curious party holds itself are grey in both.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks.base import Guess
from plumbob.federation import Feature, FloatArray
from plumbob.files import private_folder, write_whole
from plumbob.scoring.score import dealt
from plumbob.scoring.truth import truth_of
from plumbob.threats import View
from plumbob.transcript import Transcript

SHOWN = 16  # rows
ACROSS = 8  # pictures side by side
ENLARGED = 3  # screen pixels per pixel, each way
GAP = 2  # screen pixels between pictures; three times that between bands
KNOWN = 0.5  # grey of pixels that nobody had to guess
PAPER = 1.0  # between the pictures

Bytes = NDArray[np.uint8]


def save_sheet(folder: Path, key: str, log: Transcript, view: View, guess: Guess) -> None:
    """Write the contact sheet of one finding, whole or not at all."""
    if guess.values is None and guess.people is None:
        return
    sheet = sheet_of(log, view, guess)
    private_folder(folder)
    write_whole(sheet_path(folder, key), sheet, private=True)


def sheet_of(log: Transcript, view: View, guess: Guess) -> bytes:
    """The first rows' real pictures above the recovered ones, as PNG; people without names stand below the row they are."""
    truth = truth_of(log, view)
    values = dealt(guess, truth, view).values
    assert values is not None
    places = [log.features[i] for i in view.unknown]
    shape = picture_shape(log.features)
    sides = (truth.values[:SHOWN], values[:SHOWN])
    return png(contact_sheet(*(assembled(side, places, shape) for side in sides)))


def sheet_path(folder: Path, key: str) -> Path:
    return folder / f"{key}.png"


def picture_shape(features: Sequence[Feature]) -> tuple[int, int, int]:
    """Channels, height and width that hold every pixel, counted from place 0."""
    channels, height, width = np.max([f.column.place for f in features if f.column.place is not None], axis=0) + 1
    return int(channels), int(height), int(width)


def assembled(values: FloatArray, features: Sequence[Feature], shape: tuple[int, int, int]) -> FloatArray:
    """Pictures (rows x channels x height x width) from columns put back at their places; the rest is grey."""
    pictures = np.full((len(values), *shape), KNOWN)
    at = np.array([feature.column.place for feature in features])
    pictures[:, at[:, 0], at[:, 1], at[:, 2]] = np.clip(values, 0.0, 1.0)
    return pictures


def contact_sheet(real: FloatArray, recovered: FloatArray) -> Bytes:
    """Height x width x channels in grey levels: bands of eight pictures, the real ones above the recovered ones."""
    bands = [
        _band(side[start : start + ACROSS], min(ACROSS, len(real)))
        for start in range(0, len(real), ACROSS)
        for side in (real, recovered)
    ]
    rows = [
        np.pad(band, ((0, GAP * (1 + 2 * (i % 2))), (0, 0), (0, 0)), constant_values=PAPER)
        for i, band in enumerate(bands)
    ]
    sheet = np.concatenate(rows)[: -3 * GAP]
    return np.rint(255 * sheet).astype(np.uint8)


def _band(pictures: FloatArray, places: int) -> FloatArray:
    """Pictures side by side on so many places, enlarged."""
    large = pictures.repeat(ENLARGED, axis=2).repeat(ENLARGED, axis=3).transpose(0, 2, 3, 1)
    height, width, channels = large.shape[1:]
    band = np.full((height, places * (width + GAP), channels), PAPER)
    for i, picture in enumerate(large):
        band[:, i * (width + GAP) : i * (width + GAP) + width] = picture
    return band[:, : -GAP or None]


def png(image: Bytes) -> bytes:
    """A picture of 1 (grey) or 3 (red, green, blue) channels as a PNG file; of any other number the first is shown.

    >>> png(np.zeros((2, 3, 1), dtype=np.uint8))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    height, width, channels = image.shape
    if channels != 3:
        image, channels = image[:, :, :1], 1
    lines = np.zeros((height, 1 + width * channels), dtype=np.uint8)  # each begins with its filter: 0, none
    lines[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
