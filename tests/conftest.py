"""Shared pieces of the tests: where the data files are, and small federations to run things on."""

from __future__ import annotations

import os
from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
if SHARED.is_dir():
    os.environ.setdefault("PLUMBOB_DATA", str(SHARED))
os.environ.setdefault("OMP_NUM_THREADS", "1")
