"""What only some systems have: locks of files that end with their process, and the peak memory of a process.

Both come with Linux and macOS. Elsewhere a lock is refused in one sentence, since two audits would write over each other, and
the peak memory is not known, which is written as 0.
"""

from __future__ import annotations

import platform
import sys
from typing import IO

from plumbob.errors import BadInput

try:
    import fcntl
    import resource
except ImportError:  # a system without them, such as Windows
    _SUPPORTED = False
else:
    _SUPPORTED = True

_UNIT = 2**20 if sys.platform == "darwin" else 2**10  # in which a system counts the peak: bytes or kilobytes


def lock(file: int | IO[str] | IO[bytes], *, wait: bool = False) -> bool:
    """Take the only lock of an open file, until it is closed or the process ends. Whether it could be had."""
    if not _SUPPORTED:
        raise BadInput(
            f"an audit needs file locks (flock), which {platform.system() or 'this system'} does not have; "
            "run it on Linux, on macOS or in a container"
        )
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def peak_mb() -> float:
    """The most memory that this process has held so far; 0 where the system does not tell."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _UNIT if _SUPPORTED else 0.0
