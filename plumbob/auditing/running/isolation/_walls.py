"""What Linux offers to confine a process: namespaces, Landlock, a filter of system calls, a limit of memory.

Nothing of Plumbob or of a library is imported here: namespaces of users can only be entered by a process without threads, and
numeric libraries start some. Each function raises OSError where the system lacks the part or forbids it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

NAMESPACES, LANDLOCK, SYSTEM_CALLS = "user namespaces", "Landlock", "system call filter"
PARTS = (NAMESPACES, LANDLOCK, SYSTEM_CALLS)
LINUX = sys.platform.startswith("linux")
ROOM = 4 * 2**30  # bytes of addresses that stacks and heaps of threads may take beyond the memory they use
CODE = (".py", ".pyc", ".so")  # what may be read of a package that is not installed

_NEW = 0x10000000 | 0x20000000 | 0x40000000 | 0x08000000  # users, processes, network, shared memory
_NO_NEW_PRIVILEGES, _GET_SECCOMP, _SECCOMP, _FILTER = 38, 21, 22, 2
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITIES_VERSION = 0x20080522

# Landlock, by the version of its interface: every access to files that it can forbid, then TCP, then signals and sockets.
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_FILES = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3

# System calls that reach beyond what the other parts close, by number: sockets in the file system, keys of the user, other
# processes, namespaces of its own; processes, which would have limits of their own; and modes, owners, dates and attributes
# of files, which Landlock leaves open.
_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_REFUSED: dict[
    str, tuple[int, ...]
] = {  # socket; ptrace, process_vm_readv, process_vm_writev, pidfd_getfd; add_key, request_key, keyctl; io_uring (3);
    # bpf, perf_event_open, userfaultfd; unshare, setns; open_by_handle_at; fchmodat2, setxattrat, removexattrat, file_setattr
    "x86_64": (41, 101, 310, 311, 438, 248, 249, 250, 425, 426, 427, 321, 298, 323, 272, 308, 304, 452, 463, 466, 469),
    "aarch64": (198, 117, 270, 271, 438, 217, 218, 219, 425, 426, 427, 280, 241, 282, 97, 268, 265, 452, 463, 466, 469),
}
_REFUSED["x86_64"] += (57, 58, 76, 90, 91, 268, 92, 93, 94, 260)  # fork, vfork; truncate; chmod (3), chown (4)
_REFUSED["x86_64"] += (132, 235, 261, 280, 188, 189, 190, 197, 198, 199)  # utime (4), setxattr (3), removexattr (3)
_REFUSED["aarch64"] += (45, 52, 53, 54, 55, 88, 5, 6, 7, 14, 15, 16)  # the same, as far as it has them
_CLONE, _CLONE3 = {"x86_64": 56, "aarch64": 220}, 435
_THREAD = 0x10000  # the flag that makes a thread of what would be a process
_X32 = 0x40000000  # from here on x86_64 counts the calls of another interface
_EPERM, _ENOSYS = 1, 38

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _call(number: int, *arguments: object) -> int:
    return _checked(int(_libc.syscall(ctypes.c_long(number), *arguments)), f"system call {number}")


def enter_namespaces() -> None:
    """Users, network and shared memory of its own from here on; the next child is the first process of a world of its own."""
    if not hasattr(_libc, "unshare"):
        raise OSError("this system has no namespaces")
    _checked(int(_libc.unshare(_NEW)), "unshare")


def give_up_privileges() -> None:
    """No program and no call can give this process rights that it lacks; nor does it keep those of its own namespaces."""
    _checked(int(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)), "prctl")
    head, none = struct.pack("Ii", _CAPABILITIES_VERSION, 0), bytes(24)
    if platform.machine() in _CAPSET:
        _call(_CAPSET[platform.machine()], head, none)


def landlock_version() -> int:
    """The version of Landlock's interface; OSError where there is none."""
    if not LINUX:
        raise OSError("this system has no Landlock")
    return _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1))


def lacking() -> list[str]:
    """Which of Landlock and the filter of system calls this system does not have."""
    found = []
    try:
        landlock_version()
    except OSError:
        found.append(LANDLOCK)
    if not LINUX or platform.machine() not in _AUDIT or _libc.prctl(_GET_SECCOMP, 0, 0, 0, 0) < 0:
        found.append(SYSTEM_CALLS)
    return found


def close_files(readable: Iterable[str], packages: Iterable[str]) -> None:
    """Nothing on any disk can be opened from here on but these files and folders, for reading; of `packages` only their code."""
    version = landlock_version()
    attributes = struct.pack("QQQ", _FILES.get(version, _FILES[5]), 0b11, 0b11)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = _call(_CREATE, attributes[:size], ctypes.c_size_t(size), ctypes.c_uint(0))
    for path in readable:
        _allow(rules, path, _READ_FILE | _READ_DIR)
    _allow(rules, os.devnull, _READ_FILE | _WRITE_FILE)
    for package in packages:
        for path in _code_of(package):
            _allow(rules, path, _READ_FILE)
        _allow(rules, package, _READ_DIR)
    _call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint(0))
    os.close(rules)


def _allow(rules: int, path: str, access: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there need not be opened
    try:
        access &= access if Path(path).is_dir() else ~_READ_DIR
        if access:
            rule = struct.pack("=Qi", access, place)
            _call(_ADD, ctypes.c_int(rules), ctypes.c_int(1), rule, ctypes.c_uint(0))
    finally:
        os.close(place)


def _code_of(package: str) -> Iterable[str]:
    if not Path(package).is_dir():
        return [package]
    return (str(path) for path in Path(package).rglob("*") if path.suffix in CODE)


def readable() -> list[str]:
    """Where code and what describes the machine lies: Python, installed packages, Plumbob, the system's libraries."""
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    paths += [f"{prefix}/lib" for prefix in (sys.prefix, sys.base_prefix)]
    paths += [str(Path(__file__).parents[3])]
    paths += ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/dev/urandom"]
    paths += ["/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"]
    return list(dict.fromkeys(os.path.realpath(path) for path in paths))


def _operation(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def close_system_calls() -> None:
    """Calls that could reach out of the namespaces, and those that start processes, are refused from here on."""
    machine = platform.machine()
    if machine not in _AUDIT or not LINUX:
        raise OSError(f"no numbers of system calls for {machine}")
    load, equal, greater, has, give = 0x20, 0x15, 0x35, 0x45, 0x06
    refuse, unknown, allow = (_operation(give, value) for value in (0x50000 | _EPERM, 0x50000 | _ENOSYS, 0x7FFF0000))
    steps = [_operation(load, 4), _operation(equal, _AUDIT[machine], 1, 0), refuse, _operation(load, 0)]
    if machine == "x86_64":
        steps += [_operation(greater, _X32, 0, 1), refuse]
    for number in _REFUSED[machine]:
        steps += [_operation(equal, number, 0, 1), refuse]
    steps += [
        _operation(equal, _CLONE3, 0, 1),
        unknown,
    ]  # the C library then takes the other, whose flags can be seen here
    steps += [
        _operation(equal, _CLONE[machine], 0, 3),
        _operation(load, 16),
        _operation(has, _THREAD, 1, 0),
        refuse,
        allow,
    ]
    program = b"".join(steps)
    held = ctypes.create_string_buffer(program)
    about = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(held))
    _checked(int(_libc.prctl(_SECCOMP, _FILTER, about, 0, 0)), "seccomp")


def limit_memory(megabytes: float) -> None:
    """No more than so much memory beyond what is held now; and no file with what is in it if this process crashes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    whole, data = _held()
    limits = {resource.RLIMIT_DATA: data + megabytes * 2**20, resource.RLIMIT_AS: whole + 2 * megabytes * 2**20 + ROOM}
    for which, most in limits.items():
        with suppress(ValueError, OSError):  # it has a lower limit, or the system has none of this kind
            resource.setrlimit(which, (int(most), int(most)))


def _held() -> tuple[int, int]:
    """Bytes of addresses and, nearly as RLIMIT_DATA counts them, of writable memory; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:  # noqa: PTH123  # in every fork: the shortest way
            pages = [int(word) for word in file.read().split()]
        return pages[0] * resource.getpagesize(), pages[5] * resource.getpagesize()
    except OSError:
        return 0, 0
