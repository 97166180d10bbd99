"""Files that are there whole or not at all: written beside their place first, then moved to it."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Text as UTF-8, or bytes. `durable` waits for the disk; a part that a kill left is written over.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "a.txt", "all of it")
    ...     print([path.name for path in Path(folder).iterdir()])
    ['a.txt']
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
