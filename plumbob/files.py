"""Files of users, read without trusting them, and atomic writes (to a temporary path, then renamed).

Only regular files are opened: a named pipe would hang, a device such as /dev/zero never ends. What a path is gets checked on
the open descriptor, so that nothing can be put in its place between the check and the reading. A file may also grow, or say
that it is smaller than it is: bytes are counted as they come.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from plumbob import memory
from plumbob.errors import BadInput

_HARMLESS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
_HARMLESS |= getattr(os, "O_BINARY", 0)
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
_NOT_READABLE = (errno.ENXIO, errno.EOPNOTSUPP, errno.ENODEV)  # what opening a socket or a device gives
# What a path can be wrong with, and what to do about it.
_MENDS = {
    errno.ENAMETOOLONG: "use a shorter path",
    errno.EACCES: "check its permissions and those of its folders",
    errno.EPERM: "check its permissions and those of its folders",
    errno.ELOOP: "name the file itself, not a link that leads back to itself",
    errno.ENOTDIR: "one part of the path is a file, not a folder",
    errno.EISDIR: "name a file, not a folder",
    errno.ENOENT: "check the path",
    errno.EROFS: "choose a place that can be written",
    errno.ENOSPC: "free some space or choose another disk",
    errno.EDQUOT: "free some space or choose another disk",
    errno.EFBIG: "choose another disk",
    errno.EIO: "check the disk",
    errno.ESTALE: "check that the disk is still mounted",
    errno.ETXTBSY: "close the program that uses it",
    errno.ENXIO: "name a regular file",
    errno.ENODEV: "name a regular file",
    errno.EOPNOTSUPP: "name a regular file",
    errno.EINVAL: "check the path",
}
_SHOWN = 200  # characters of a path in a sentence
_OURS = Path(__file__).parent
JSON_MEMORY = 100  # bytes of memory that a value in JSON takes at most on average, beside its text


def open_regular(path: Path | str, what: str = "", *, append: bool = False, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading, or for writing at its end; refuse pipes, sockets, devices and folders.

    `what` begins the sentence of a refusal, by default the path. Links are followed unless the caller says otherwise.

    >>> open_regular("/dev/zero")
    Traceback (most recent call last):
    plumbob.errors.BadInput: '/dev/zero' is a device; expected a regular file
    """
    flags = (_APPEND if append else os.O_RDONLY) | _HARMLESS | (0 if follow else getattr(os, "O_NOFOLLOW", 0))
    what = what or f"'{shown(path)}'"
    try:
        number = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno in _NOT_READABLE:
            raise BadInput(f"{what} is {_kind_at(path)}; expected a regular file") from error
        raise
    try:
        kind = stat.S_IFMT(os.fstat(number).st_mode)
        if kind != stat.S_IFREG:
            raise BadInput(f"{what} is {_KINDS.get(kind, 'no file')}; expected a regular file")
        return os.fdopen(number, "ab" if append else "rb")
    except BaseException:
        os.close(number)
        raise


def _kind_at(path: Path | str) -> str:
    try:
        return _KINDS.get(stat.S_IFMT(Path(path).stat().st_mode), "a pipe or a device")
    except OSError:
        return "a pipe or a device"


def parts_of(file: BinaryIO) -> Iterator[bytes]:
    """A file piece by piece."""
    while part := file.read(memory.PART):
        yield part


def read_regular(path: Path | str, what: str = "", *, most: int | None = None, follow: bool = True) -> bytes:
    """All bytes of a regular file of at most `most` bytes; without that, of one that fits in memory."""
    what = what or f"'{shown(path)}'"
    with open_regular(path, what, follow=follow) as file:
        size = os.fstat(file.fileno()).st_size
        if most is None:
            memory.check(what, size)
        left = size + memory.PART if most is None else most
        parts: list[bytes] = []
        too_large = f"{what} grows while it is read" if most is None else f"{what} is larger than {in_bytes(most)}"
        if size > left:
            raise BadInput(too_large)
        for part in parts_of(file):
            left -= len(part)
            if left < 0:
                raise BadInput(too_large)
            parts.append(part)
    return b"".join(parts)


def in_bytes(size: int) -> str:
    """A limit as people write it.

    >>> in_bytes(200 * 2**20), in_bytes(5_000)
    ('200 MB', '5,000 bytes')
    """
    return f"{size // 2**20:,} MB" if size >= 2**20 else f"{size:,} bytes"


def read_text(path: Path | str, what: str = "", *, most: int | None = None, follow: bool = True) -> str:
    """The same as UTF-8 text; a byte that is none of it is a UnicodeDecodeError. Line ends become `\\n`."""
    text = read_regular(path, what, most=most, follow=follow).decode("utf-8")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def shown(path: object) -> str:
    """A path for a sentence: of a very long one the ends.

    >>> shown("a.csv")
    'a.csv'
    """
    text = str(path)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}...{text[-_SHOWN // 4 :]}"


def real(path: Path) -> Path:
    """Where a path leads. Unlike `Path.resolve`, links in a circle end nothing: whoever opens the path will be told."""
    return Path(os.path.realpath(path))


def wrong_path(error: OSError) -> BadInput | None:
    """What is wrong with a path that a user named, in one sentence; None if it is not the path's fault, or not a user's path."""
    if error.errno not in _MENDS or not isinstance(error.filename, str | bytes | os.PathLike):
        return None
    path = Path(os.fsdecode(error.filename))
    if path.is_relative_to(_OURS):
        return None
    return BadInput(f"cannot open '{shown(path)}': {os.strerror(error.errno).lower()}; {_MENDS[error.errno]}")


@contextmanager
def users_paths() -> Iterator[None]:
    """An OSError about a user's path becomes one sentence."""
    try:
        yield
    except OSError as error:
        refusal = wrong_path(error)
        if refusal is None:
            raise
        raise refusal from error
    except ValueError as error:
        if "null byte" not in str(error):
            raise
        raise BadInput("a path contains a zero byte, and no file has such a name; check the path") from error


@contextmanager
def reading(what: str, missing: str) -> Iterator[None]:
    """A file that a user named: whatever its path or its bytes are wrong with becomes one sentence about `what`.

    >>> with reading("the list a.txt", "no list at a.txt"):
    ...     read_text("a.txt")
    Traceback (most recent call last):
    plumbob.errors.BadInput: no list at a.txt
    """
    try:
        yield
    except FileNotFoundError as error:
        raise BadInput(missing) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{what} is not UTF-8 text; save it as UTF-8") from error
    except OSError as error:
        raise wrong_path(error) or BadInput(f"{what} cannot be read") from error
    except ValueError as error:
        raise BadInput(f"{what} cannot be read: no file has such a name") from error


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
        part.unlink(missing_ok=True)  # not opened: it may be a pipe by now
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

    JSON of brackets and commas takes thirty times its size in memory: what does not fit is refused before it is parsed.

    >>> parse_json('["\\u00e9"]')
    ['é']
    >>> parse_json('["\\ud800"]')
    Traceback (most recent call last):
    UnicodeEncodeError: 'utf-8' codec can't encode character '\ud800' in position 2: surrogates not allowed
    """
    values = sum(map(data.count, ",[{")) if isinstance(data, str) else sum(map(data.count, b",[{"))
    memory.check("this JSON", 4 * len(data) + JSON_MEMORY * values)
    parsed = json.loads(data, **options)
    if (b"\\ud" if isinstance(data, bytes) else "\\ud") in data.lower():  # type: ignore[operator]  # of one kind
        json.dumps(parsed, ensure_ascii=False).encode()
    return parsed
