"""Atomic file writes (written to a temporary path, then renamed), files for their owner alone, JSON from untrusted sources."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import IO, Any


def write_whole(path: Path, content: str | bytes, *, durable: bool = False, private: bool = False) -> None:
    """Write text (UTF-8) or bytes atomically. `durable` waits for the disk; leftovers of a killed process are overwritten.
    What is `private` can be read by its owner only, whatever the umask says and whoever could read what was there before.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "a.txt", "all of it")
    ...     print([path.name for path in Path(folder).iterdir()])
    ['a.txt']
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with private_file(part) if private else part.open("wb") as file:
            file.write(content.encode("utf-8") if isinstance(content, str) else content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def private_file(path: Path) -> IO[bytes]:
    """A new file, or one emptied, that only its owner can read and write."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    path.chmod(0o600)
    return os.fdopen(file, "wb")


def private_folder(path: Path) -> None:
    """Make a folder that only its owner can enter, or make it so."""
    path.mkdir(mode=0o700, exist_ok=True)
    path.chmod(0o700)


def parse_json(data: str | bytes, **options: Any) -> Any:
    r"""Parse JSON whose text can be encoded again: a lone surrogate is a ValueError, like any other invalid JSON.

    >>> parse_json('["\\u00e9"]')
    ['é']
    >>> parse_json('["\\ud800"]')
    Traceback (most recent call last):
    UnicodeEncodeError: 'utf-8' codec can't encode character '\ud800' in position 2: surrogates not allowed
    """
    parsed = json.loads(data, **options)
    if (b"\\ud" if isinstance(data, bytes) else "\\ud") in data.lower():  # type: ignore[operator]  # of one kind
        json.dumps(parsed, ensure_ascii=False).encode()
    return parsed
