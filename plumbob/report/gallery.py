"""What was recovered of pictures, as a section of the report: contact sheets, and how good they are."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from plumbob.auditing.concluding.summarise import attacked, group
from plumbob.auditing.running.finding import Finding
from plumbob.report import canvas, charts
from plumbob.report.canvas import Axis
from plumbob.report.charts import Box, Point, Series
from plumbob.report.figures import Figure
from plumbob.report.phrases import defence_words, label, number, percent, short
from plumbob.scoring.images import ImageScore

LEFT_OUT = (
    "Pictures of the rows are left out, because this data set is not known to be public. If it may be shown, run "
    "plumbob audit with --show-pictures."
)
SHOWN = (
    "Real pictures above the recovered ones, the first rows of the first trial; pixels that the curious side holds itself "
    "are grey. Where it learns no names, each picture was put below its row by Plumbob."
)
READ = (
    "PSNR says how close a recovered tile is to the real one: 20 dB is an error of a tenth of the range from black to white, "
    "40 dB of a hundredth; it is capped at 100 dB. SSIM is 1 for the same structure, 0 for none. A tile counts as exact if no "
    "pixel is off by more than half a grey level. The mean picture is what guessing every pixel’s true mean reaches."
)


@dataclass(frozen=True)
class Exhibit:
    """The first trial of one setting: what is said of it, and its contact sheet where it may be shown."""

    heading: str
    facts: tuple[tuple[str, str], ...]
    picture: str  # a data address, or empty


@dataclass(frozen=True)
class Gallery:
    """The section. Nothing in it where no pictures were attacked."""

    exhibits: tuple[Exhibit, ...]
    figures: tuple[Figure, ...]
    sentence: str
    read: str = READ

    def __bool__(self) -> bool:
        return bool(self.exhibits or self.figures)

    @property
    def heading(self) -> str:
        return "What was recovered of the pictures?" if self.exhibits else "How did the training go?"

    @property
    def shown(self) -> bool:
        """Whether it holds pictures of rows."""
        return any(exhibit.picture for exhibit in self.exhibits)


def gallery(findings: Sequence[Finding], sheets: Mapping[str, bytes]) -> Gallery:
    """The section for these findings; `sheets` are contact sheets by the findings' keys, where they may be shown."""
    drawn = [finding for finding in findings if finding.score.images is not None]
    exhibits = tuple(
        _exhibit(heading, min(parts, key=lambda f: f.trial), sheets)
        for heading, parts in group(drawn, lambda f: _heading(f, drawn)).items()
    )
    figures = [*_boxes(drawn), *_paths(drawn), *_losses(attacked(findings))]
    sentence = SHOWN if any(exhibit.picture for exhibit in exhibits) else LEFT_OUT if exhibits else ""
    return Gallery(exhibits, tuple(figures), sentence)


def _exhibit(heading: str, finding: Finding, sheets: Mapping[str, bytes]) -> Exhibit:
    images, judged = _images(finding), finding.score
    facts = [
        ("Mean PSNR", f"{images.psnr:.1f} dB; {images.psnr_of_mean_mse:.1f} dB of the mean squared error"),
        ("Mean picture", f"{images.constant_psnr:.1f} dB"),
        ("SSIM", f"{images.ssim:.3f}"),
        ("Exact tiles", percent(images.exact)),
    ]
    if judged.label_accuracy is not None:
        usual = f"; most frequent class {percent(judged.label_baseline or 0.0)}"
        facts.append(("Labels guessed", percent(judged.label_accuracy) + usual))
    sheet = sheets.get(finding.key)
    picture = "" if sheet is None else f"data:image/png;base64,{base64.b64encode(sheet).decode()}"
    return Exhibit(heading, tuple(facts), picture)


def _boxes(findings: Sequence[Finding]) -> list[Figure]:
    """PSNR by attack and defence: quantiles over tiles and rows, the mean over trials."""
    figures = []
    for scene, parts in group(findings, lambda f: _scene(f)).items():
        boxes, rows = [], []
        for name, trials in group(parts, _attacked).items():
            images = [_images(finding) for finding in trials]
            low, quarter, middle, upper, high = (fmean(i.psnr_quantiles[q] for i in images) for q in range(5))
            mean = fmean(i.psnr for i in images)
            title = f"{name}: median {middle:.1f} dB, half of the tiles from {quarter:.1f} to {upper:.1f} dB"
            boxes.append(Box(name, (low, quarter, middle, upper, high), mean, f"{mean:.1f} dB", title))
            rows.append((name, *(f"{value:.1f}" for value in (mean, low, quarter, middle, upper, high))))
        guess = fmean(_images(finding).constant_psnr for finding in parts)
        top = canvas.nice_top(max(guess, *(box.quantiles[4] for box in boxes)))
        axis = Axis("PSNR of a tile, dB (higher: more is learnt)", 0.0, top)
        drawing = charts.box_chart(boxes, ("mean picture", guess), axis, f"PSNR by attack and defence: {scene}")
        caption = (
            "Boxes: half of the tiles; whiskers: 90 %; line: the median; diamond: the mean. Dashed: the mean picture."
        )
        header = ("attack", "mean", "5 %", "25 %", "median", "75 %", "95 %")
        figures.append(Figure(f"PSNR: {scene}", caption, (drawing,), header, tuple(rows)))
    return figures


def _paths(findings: Sequence[Finding]) -> list[Figure]:
    """PSNR against iteration, of attacks by steps."""
    walked = [finding for finding in findings if len(_images(finding).path) > 1]
    one = len({finding.attack for finding in walked}) == 1

    def name(finding: Finding) -> str:
        return defence_words(finding.defence) if one else _attacked(finding)

    x, y = "iteration of the attack", "mean PSNR, dB (higher: more is learnt)"
    return [
        _lines(f"PSNR while the attack runs: {scene}", parts, name, lambda f: _images(f).path, x, y)
        for scene, parts in group(walked, lambda f: _scene(f)).items()
    ]


def _losses(findings: Sequence[Finding]) -> list[Figure]:
    """Training loss against round: a protection that leaks nothing may also train nothing."""
    trained = [finding for finding in findings if len(finding.training_loss) > 1]
    one = len({finding.protocol for finding in trained}) == 1

    def name(finding: Finding) -> str:
        protection = defence_words(finding.defence)
        return protection if one else f"{label(finding.protocol)}, {protection}"

    return [
        _lines(f"Training loss: {short(data)}", parts, name, lambda f: f.training_loss, "round of training", "loss")
        for data, parts in group(trained, lambda f: f.data).items()
    ]


def _lines(
    heading: str,
    findings: Sequence[Finding],
    name: Callable[[Finding], str],
    points: Callable[[Finding], Sequence[tuple[int, float]]],
    x: str,
    y: str,
) -> Figure:
    """One line per name, that of its first trial."""
    firsts = {key: min(parts, key=lambda f: f.trial) for key, parts in group(findings, name).items()}
    series = []
    for i, (key, finding) in enumerate(firsts.items()):
        marks = (Point(at, v, v, v, f"{key}, {at:,}: {number(v)}") for at, v in points(finding))
        series.append(Series(key, tuple(marks), i))
    every = [point for one in series for point in one.points]
    across = Axis(x, min(p.x for p in every), max(p.x for p in every))
    up = Axis(y, min(0.0, *(p.y for p in every)), canvas.nice_top(max(p.y for p in every)))
    rows = tuple((one.name, f"{p.x:,.0f}", number(p.y)) for one in series for p in one.points)
    drawing = charts.line_chart(series, across, up, heading)
    return Figure(heading, "The first trial of each.", (drawing,), ("", x, y), rows)


def _heading(finding: Finding, among: Sequence[Finding]) -> str:
    """Attack and defence, and of the rest what differs."""
    several = (len({getattr(f, field) for f in among}) > 1 for field in ("data", "protocol", "threat"))
    rest = (short(finding.data), label(finding.protocol), f"seen by {short(finding.threat)}")
    return ", ".join([_attacked(finding), *(word for word, differs in zip(rest, several, strict=True) if differs)])


def _attacked(finding: Finding) -> str:
    return f"{label(finding.attack)}, {defence_words(finding.defence)}"


def _scene(finding: Finding) -> str:
    return f"{label(finding.protocol)} on {short(finding.data)}, seen by {short(finding.threat)}"


def _images(finding: Finding) -> ImageScore:
    assert finding.score.images is not None
    return finding.score.images
