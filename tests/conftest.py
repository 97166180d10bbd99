"""Shared pieces of the tests: where the data files are, and which examples hypothesis draws.

The same code gets the same verdict: examples are drawn from a fixed seed, unless HYPOTHESIS_PROFILE=search asks for new ones.
"""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import settings

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
if SHARED.is_dir():
    os.environ.setdefault("PLUMBOB_DATA", str(SHARED))
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("same", derandomize=True)
settings.register_profile("search", print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
