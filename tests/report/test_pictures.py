"""Contact sheets, pixel by pixel, and who gets to see them."""

from __future__ import annotations

import io
import json
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from plumbob.app import Result, run_audit
from plumbob.attacks.base import Guess
from plumbob.auditing.concluding.summarise import attacked
from plumbob.auditing.running.finding import Finding, read_findings
from plumbob.auditing.running.open_data import Source
from plumbob.auditing.running.run import LOSSES, training_losses
from plumbob.federation import split_into_tiles
from plumbob.report.gallery import LEFT_OUT, SHOWN, gallery
from plumbob.report.page import About, render
from plumbob.report.pictures import ENLARGED, GAP, assembled, contact_sheet, picture_shape, png, save_sheet
from plumbob.report.terminal import print_summary
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, cut
from tests.report import samples
from tests.worlds import made_pictures, picture_world

PLAN: dict[str, Any] = {
    "data": "mnist",
    "protocols": ["logistic_regression"],
    "threats": ["active"],
    "attacks": ["equation_solving"],
    "trials": 2,
}


def decoded(data: bytes) -> np.ndarray:
    """A PNG without filters, by hand: height x width x channels. Every chunk must keep its checksum."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, rest) == (8, [0, 0, 0])
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, {0: 1, 2: 3}[colour])


def page(findings: list[Finding], sheets: dict[str, bytes] | None = None) -> str:
    return render(findings, About(title="t", question="q", command="c", sheets=sheets or {}))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_png_holds_the_pixels(channels: int) -> None:
    image = np.random.default_rng(0).integers(0, 256, (5, 7, channels)).astype(np.uint8)
    assert (decoded(png(image)) == image).all()


def test_of_two_channels_the_first_is_shown() -> None:
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 2)).astype(np.uint8)
    assert (decoded(png(image)) == image[:, :, :1]).all()


@pytest.mark.parametrize("channels", [1, 3])
def test_tiles_are_put_back_where_they_were(channels: int) -> None:
    table = made_pictures(rows=5, channels=channels)
    federation = split_into_tiles(table, 4)
    shape = picture_shape(federation.features)
    assert shape == (channels, 8, 8)
    whole = assembled(federation.values, federation.features, shape)
    assert (whole == table.values.reshape(5, channels, 8, 8)).all()


def test_the_sheet_has_the_real_above_the_recovered_enlarged() -> None:
    rng = np.random.default_rng(0)
    real, recovered = (rng.integers(0, 256, (10, 3, 4, 5)) / 255 for _ in range(2))
    sheet = contact_sheet(real, recovered)
    tall, wide = 4 * ENLARGED, 5 * ENLARGED
    assert sheet.shape == (4 * tall + 2 * GAP + 3 * GAP, 8 * wide + 7 * GAP, 3)
    tops = [0, tall + GAP, 2 * tall + 4 * GAP, 3 * tall + 5 * GAP]
    for top, side, start in zip(tops, (real, recovered) * 2, (0, 0, 8, 8), strict=True):
        for i in range(8):
            cell = sheet[top : top + tall, i * (wide + GAP) : i * (wide + GAP) + wide]
            if start + i >= 10:
                assert (cell == 255).all()
                continue
            expected = np.rint(255 * side[start + i].transpose(1, 2, 0))
            assert (cell[::ENLARGED, ::ENLARGED] == expected).all()
            assert (cell[1::ENLARGED, 2::ENLARGED] == expected).all()
    assert (sheet[tall : tall + GAP] == 255).all()


def test_the_file_of_a_finding_hides_what_the_curious_hold(tmp_path: Path) -> None:
    log = picture_world()
    view = cut(log, THREATS["collusion"])  # all but the last tile
    truth = truth_of(log, view)
    save_sheet(tmp_path / "pictures", "abc", log, view, Guess(truth.names, 1 - truth.values))
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["abc.png"]
    sheet = decoded((tmp_path / "pictures" / "abc.png").read_bytes())
    tall = 8 * ENLARGED
    for top, side in ((0, truth.values), (tall + GAP, 1 - truth.values)):
        cell = sheet[top : top + tall : ENLARGED, : 8 * ENLARGED : ENLARGED, 0]
        assert (cell[4:, 4:] == np.rint(255 * side[0].reshape(4, 4))).all()
        assert (cell[:4] == 128).all()
        assert (cell[:, :4] == 128).all()


def test_a_finding_with_pictures_reads_back_as_it_was() -> None:
    for finding in samples.pictures():
        again = Finding.from_line(finding.to_line())
        assert again == finding
        assert again.score.images == finding.score.images
        assert again.training_loss


def test_a_finding_of_before_there_were_pictures_reads_back() -> None:
    (finding,) = samples.values(shares=(0.3,), trials=1, attacks=("box_solving",))
    raw = json.loads(finding.to_line())
    for name in ("images", "label_accuracy", "label_baseline"):
        del raw["score"][name]
    del raw["training_loss"]
    assert Finding.from_line(json.dumps(raw)) == finding


def test_a_finding_keeps_few_losses_from_first_to_last_and_no_infinity() -> None:
    losses = np.linspace(2, 0.1, 300)
    losses[0] = np.inf
    kept = training_losses(picture_world(losses=losses))
    assert len(kept) == LOSSES - 1
    assert kept[-1] == (299, pytest.approx(0.1))
    assert all(loss == losses[round] for round, loss in kept)
    assert training_losses(picture_world()) == ()
    assert training_losses(picture_world(losses=np.array([1.0]))) == ((0, 1.0),)


def test_the_section_shows_what_it_is_given_and_says_what_it_is_not() -> None:
    findings = samples.pictures() + samples.pictures("noise", 0.4)
    with_sheets = gallery(findings, {"none0": png(np.zeros((2, 2, 1), dtype=np.uint8))})
    assert [exhibit.heading for exhibit in with_sheets.exhibits] == [
        "tile recovery, without defence",
        "tile recovery, with noise",
    ]
    assert [bool(exhibit.picture) for exhibit in with_sheets.exhibits] == [True, False]
    assert (with_sheets.sentence, gallery(findings, {}).sentence) == (SHOWN, LEFT_OUT)
    names = [figure.heading.split(":")[0] for figure in with_sheets.figures]
    assert names == ["PSNR", "PSNR while the attack runs", "Training loss"]
    lines = {row[0] for row in with_sheets.figures[2].rows}
    assert lines == {"without defence", "with noise"}
    assert not gallery(samples.audit(), {})


def test_the_page_has_the_section_and_the_numbers() -> None:
    findings = samples.pictures()
    images = findings[0].score.images
    assert images is not None
    text = page(findings, {"none0": png(np.zeros((2, 2, 1), dtype=np.uint8))})
    assert "What was recovered of the pictures?" in text
    assert text.count("data:image/png;base64,iVBOR") == 1
    assert "no value of any row" not in text
    assert f"{images.psnr:.1f} dB" in text
    assert "Yes: 4\u00a0of\u00a04 tiles leak" in text
    bare = page(findings)
    assert "data:image" not in bare
    assert "--show-pictures" in bare
    assert "no value of any row" in bare
    assert "What was recovered of the pictures?" not in page(samples.audit())


def test_the_terminal_says_how_good_the_pictures_are() -> None:
    printed = io.StringIO()
    print_summary(samples.pictures(), Console(file=printed, width=300))
    text = printed.getvalue()
    assert "Yes: 4 of 4 tiles leak" in text
    assert "Pictures: 34" in text
    assert "(share exact 0 %) by tile recovery; the mean picture reaches" in text
    assert "Label: Every label is known, where the best guess without a message gets 33 %, by tile recovery." in text
    assert "The curious side holds none of the 64 pixels; all were attacked." in text


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Source:
    """Pictures that nobody published, in place of whatever the plan names."""
    federation = split_into_tiles(made_pictures(rows=120), 4)
    source = Source("made pictures", federation, None, ())
    monkeypatch.setattr("plumbob.app.open_source", lambda plan, seed, frames=None: source)
    return source


def names_in(result: Result) -> set[str]:
    folder = result.folder / "pictures"
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def test_pictures_of_private_data_need_the_flag_and_the_flag_may_come_later(source: Source, tmp_path: Path) -> None:
    without = run_audit(PLAN, tmp_path / "out")
    assert names_in(without) == set()
    assert "--show-pictures" in without.report.read_text(encoding="utf-8")
    lines = (tmp_path / "out" / "findings.jsonl").read_text(encoding="utf-8")
    shown = run_audit(PLAN, tmp_path / "out", show_pictures=True)
    assert names_in(shown) == {f"{finding.address}.png" for finding in attacked(shown.findings)}
    assert len(names_in(shown)) == 2
    assert (tmp_path / "out" / "findings.jsonl").read_text(encoding="utf-8") == lines
    assert shown.report.read_text(encoding="utf-8").count("data:image/png;base64,") == 1
    again = run_audit(PLAN, tmp_path / "out")
    assert "data:image" not in again.report.read_text(encoding="utf-8")


def test_workers_and_a_second_run_change_no_picture(source: Source, tmp_path: Path) -> None:
    one = run_audit(PLAN, tmp_path / "one", show_pictures=True)
    two = run_audit(PLAN, tmp_path / "two", show_pictures=True, workers=2)
    before = {path.name: path.stat().st_mtime_ns for path in (two.folder / "pictures").iterdir()}
    run_audit(PLAN, tmp_path / "two", show_pictures=True)
    assert {path.name: path.stat().st_mtime_ns for path in (two.folder / "pictures").iterdir()} == before
    for name in names_in(one) | names_in(two):
        assert (one.folder / "pictures" / name).read_bytes() == (two.folder / "pictures" / name).read_bytes()


def test_pictures_of_a_published_set_are_shown(source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plumbob.app.open_source", lambda plan, seed, frames=None: replace(source, public=True))
    result = run_audit(PLAN, tmp_path / "out")
    assert len(names_in(result)) == 2
    assert "data:image/png;base64," in result.report.read_text(encoding="utf-8")
    assert all(f.score.images is not None for f in attacked(read_findings(result.folder / "findings.jsonl")))
