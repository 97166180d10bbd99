"""Private keys stay in memory: nothing an audit writes or prints holds one."""

from __future__ import annotations

import io
import logging
import zipfile
from pathlib import Path

import pytest
from rich.console import Console

from plumbob.app import run_audit
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.crypto import paillier
from plumbob.report.terminal import print_summary

PROTOCOLS = [
    ("encrypted_logistic_regression", {"epochs": 3, "batch_size": 20}, "corrupted-coordinator"),
    ("encrypted_logistic_regression", {"epochs": 2, "batch_size": 40, "masked": True}, "corrupted-coordinator"),
    ("secure_boost", {"trees": 1, "depth": 1, "code": "magic_numbers"}, "active-training"),
]


def traces(prime: int) -> list[bytes]:
    """How a prime could show: as bytes of either order, in decimals or in hexadecimals."""
    size = (prime.bit_length() + 7) // 8
    shown = [prime.to_bytes(size, "big"), prime.to_bytes(size, "little"), str(prime).encode(), f"{prime:x}".encode()]
    return [*shown, f"{prime:X}".encode()]


def contents(folder: Path) -> list[bytes]:
    """Every file, and every member of every archive."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.append(path.read_bytes())
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    found += [archive.read(name) for name in archive.namelist()]
    return found


@pytest.mark.parametrize(("name", "settings", "threat"), PROTOCOLS, ids=["coordinator", "masked", "boost"])
def test_no_key_is_written_or_printed(
    name: str,
    settings: dict,
    threat: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    primes: list[int] = []
    make = paillier.generate

    def watched(bits: int = paillier.RECOMMENDED_KEY) -> paillier.PrivateKey:
        key = make(bits)
        primes.extend(int(value) for value in (key._p, key._q))
        return key

    monkeypatch.setattr(paillier, "generate", watched)
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    plan = make_plan(
        {
            "data": "breast",
            "unknown": [0.2],
            "protocols": [{"name": name, "settings": settings | {"key_bits": 1024}}],
            "threats": [threat],
            "trials": 1,
            "rows": 80,
        }
    )
    try:
        result = run_audit(plan, tmp_path / "out", transcripts=True)
    finally:
        logging.getLogger().removeHandler(handler)
    printed = io.StringIO()
    print_summary(result.findings, Console(file=printed))
    told = capfd.readouterr()
    written = contents(tmp_path)
    assert len(primes) >= 2
    assert len(written) > 4
    everything = [*written, log.getvalue().encode(), printed.getvalue().encode(), told.out.encode(), told.err.encode()]
    for prime in primes:
        for trace in traces(prime):
            assert not any(trace in part for part in everything)
