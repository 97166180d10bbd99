"""How much memory is free, and what a file may take of it: what would not fit is refused before it is read or unpacked.

Free is the least of the system's available memory, the rest of the container's limit, and PLUMBOB_MEMORY (in MB). Whatever is
free, the arrays of one recorded run unpack to `LIMIT` bytes at most.
"""

from __future__ import annotations

import os
from pathlib import Path

from plumbob.errors import BadInput

VARIABLE = "PLUMBOB_MEMORY"
LIMIT = 8 * 2**30  # bytes of arrays in one recorded run, transcript or view, unless the caller allows more
PART = 2**24  # bytes read or unpacked at a time, and counted before the next
NEVER_REFUSED_BYTES = 2**24  # bytes of need that are never refused: everything else takes more
LARGER_MACHINE = "use a larger machine"

_LIMITS = (  # of a container: the limit, what is used, and how its statistics call files that can be let go
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "inactive_file"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "total_inactive_file",
    ),
)


def available() -> int:
    """Bytes that are free to use."""
    found = [_free(), *(room for place in _LIMITS if (room := _room(*place)) is not None)]
    own = os.environ.get(VARIABLE, "")
    if own:
        if not own.isdecimal() or not int(own):
            raise BadInput(f"{VARIABLE}: expected the memory to use in MB, such as 2000, got '{own}'")
        found.append(int(own) * 2**20)
    return min(found)


def _free() -> int:
    """Memory available without swapping, as the system reports it."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:  # not Linux
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _room(limit: str, used: str, cached: str) -> int | None:
    """What a container's limit leaves, page cache not counted; None if there is no limit."""
    try:
        most, taken = (Path(name).read_text(encoding="ascii").strip() for name in (limit, used))
        told = dict(line.split() for line in Path(used).with_name("memory.stat").read_text("ascii").splitlines())
    except (OSError, ValueError):
        return None
    return max(0, int(most) - int(taken) + int(told.get(cached, 0))) if most.isdecimal() else None


def check(what: object, need: float, mend: str = LARGER_MACHINE, room: int | None = None) -> None:
    """Refuse what does not fit; `room` is what is free, where the caller has asked before."""
    if need <= NEVER_REFUSED_BYTES:
        return
    room = available() if room is None else room
    if need > max(room, NEVER_REFUSED_BYTES):
        raise BadInput(f"{what} needs about {in_words(need)} of memory and {in_words(room)} are free; {mend}")


def in_words(size: float) -> str:
    """A size in MB or GB.

    >>> in_words(3_500_000), in_words(12_345_678_901)
    ('4 MB', '12.3 GB')
    """
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
