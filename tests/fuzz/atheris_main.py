"""The same targets, steered by coverage: `python -m tests.fuzz.atheris_main plans -max_total_time=300`.

Needs atheris (`pip install atheris`). Its bytes are the choices a case is made from, so it learns which damage reaches new lines.
Options of libFuzzer go behind the target's name; what fails is written to a `crash-` file, whose name as an option repeats it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path


def main() -> None:
    """One target until the time is up, or a failure."""
    try:
        import atheris
    except ImportError:
        print("atheris is not installed, so nothing is run: pip install atheris")
        return
    with atheris.instrument_imports(include=["plumbob"]):
        from tests.fuzz.guard import judged, peak
        from tests.fuzz.targets import TARGETS, Steered
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"name a target: {', '.join(TARGETS)}")
    target = TARGETS[sys.argv.pop(1)]
    folder = Path(tempfile.mkdtemp(prefix="plumbob-fuzz-")) / "case"
    target.make(Steered(b""))  # examples are made before anything is measured
    start = peak()

    def one(data: bytes) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        outcome = judged(target.read, folder, target.make(Steered(data)), start)
        if outcome.failure:
            raise RuntimeError(outcome.failure)

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
