"""Estimate an audit's time, peak memory and disk before anything is trained.

The work is listed as the run would do it (units, transcripts, attacks), each stage costed by a measured law
(`auditing/costing/cost.py`), in the pieces that are handed to workers (`auditing/running/schedule.py`). The same laws at 10
and 100 million rows show the first limit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from plumbob.auditing.costing import cost
from plumbob.auditing.costing.cost import Costs, Size
from plumbob.auditing.costing.power import Power, power
from plumbob.auditing.planning.plan import DefencePlan, Plan
from plumbob.auditing.running.expand import Case, Unit, cases, units
from plumbob.auditing.running.open_data import Source
from plumbob.auditing.running.schedule import model_of, parts
from plumbob.scoring.column_ceiling import CEILING
from plumbob.threats import Threat

FORECASTS = (10_000_000, 100_000_000)
CREWS = (1, 16, 256)  # workers of a forecast
HOURS, GIGABYTES = 24.0, 64.0  # what a share, and a worker, of a cluster is expected to bear
PAGE = 60_000  # bytes of a report that has nothing to say
SHARE_OF_LINES = 0.6  # of the bytes of one trial's findings: what the two pages repeat
CELL = 8  # bytes of a number


@dataclass(frozen=True)
class Row:
    """One protocol, defence and attack (or `training`, `prediction`, `scoring`) over all trials and splits."""

    protocol: str
    defence: str
    attack: str
    times: int
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class Crew:
    """The estimate for a number of workers."""

    workers: int
    hours: float


@dataclass(frozen=True)
class Forecast:
    """The same plan on more rows."""

    rows: int
    crews: tuple[Crew, ...]
    share_hours: float  # the longest piece of the work
    worker_bytes: float
    disk_bytes: float
    limit: str  # what bites first, and what to do


@dataclass(frozen=True)
class Estimate:
    """The cost of an audit; seconds are processor time of one core."""

    rows: tuple[Row, ...]  # worst first
    share_seconds: tuple[float, ...]
    start_seconds: float  # libraries, and rows matched by a private set intersection
    workers: int
    seconds: float  # processor time of all workers
    wall_seconds: float
    worker_bytes: float
    peak_bytes: float  # of all workers at once
    disk_bytes: float
    notes: tuple[str, ...]
    forecasts: tuple[Forecast, ...] = ()
    power: Power | None = None  # what it will be able to rule out

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def estimate(
    plan: Plan,
    source: Source,
    *,
    workers: int = 1,
    transcripts: bool = False,
    costs: Costs | None = None,
    speeds: Mapping[str, float] | None = None,
) -> Estimate:
    """The cost of a filled plan on its data. Without `speeds` this machine is measured, in under half a second."""
    costs = costs or cost.measured()
    speeds = cost.speed(costs) if speeds is None else speeds
    total, shared = source.values.shape[0], _Shared(plan, source, costs, speeds)
    made = replace(shared.priced(total, workers, transcripts), power=power(plan, source))
    if source.recorded is not None:
        return made
    ahead = tuple(_forecast(shared, rows, transcripts) for rows in FORECASTS if rows > total)
    return replace(made, forecasts=ahead)


def spread(seconds: Sequence[float], workers: int) -> float:
    """The time until the last worker is done: free workers take the shares in order.

    >>> spread([3.0, 1.0, 2.0], 2)
    3.0
    """
    free = [0.0] * max(1, workers)
    for one in seconds:
        first = free.index(min(free))
        free[first] += one
    return max(free)


@dataclass(frozen=True)
class _Piece:
    """A stage that is run once."""

    law: str
    row: tuple[str, str, str]
    size: Size
    model: object  # what is trained for it: stages of one model are not shared out
    factor: float = 1.0


@dataclass
class _Shared:
    """What all sizes of one estimate have in common."""

    plan: Plan
    source: Source
    costs: Costs
    speeds: Mapping[str, float]
    work: list[tuple[Unit, list[Case]]] = field(init=False)

    def __post_init__(self) -> None:
        self.work = [(unit, cases(self.plan, unit)) for unit in units(self.plan)]

    def priced(self, total: int, workers: int, transcripts: bool) -> Estimate:
        """The estimate for a number of rows."""
        spent: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        remarks: dict[tuple[str, str, str], str] = {}
        shares: dict[int, float] = defaultdict(float)
        peaks, lines, kept = [0.0], 0.0, 0.0
        for number, piece in self._handed_out(total, workers):
            law, remark = self.costs.law(piece.law)
            seconds = cost.value(law, piece.size) * piece.factor * self.speeds.get(cost.kind_of(piece.law), 1.0)
            spent[piece.row].append(seconds)
            remarks[piece.row] = remark or remarks.get(piece.row, "")
            shares[number] += seconds
            if piece.row[2] in ("training", "prediction"):
                peaks.append(cost.value(self.costs.law(f"memory/{piece.size.protocol}")[0], piece.size))
                kept += transcripts * CELL * piece.size.columns * (piece.size.train + piece.size.rows)
            elif piece.row[2] != "scoring":
                lines += cost.value(self.costs.law(f"line/{piece.size.protocol}")[0], piece.size)
        by_share = list(shares.values())
        rows = [Row(*row, len(found), sum(found), remarks[row]) for row, found in spent.items()]
        crew = min(workers, max(1, len(by_share)))
        warm = any(part.protocol().uses_torch for part in self.plan.protocols) * self.costs.warm_seconds
        start = (self.costs.start_seconds + warm) * self.speeds.get("loops", 1.0)
        aligned = self._alignment(total) * self.speeds.get("powers", 1.0)
        data = self.source.values.nbytes / max(1, self.source.values.shape[0]) * total
        each = self.costs.start_bytes + max(peaks) + (data if crew > 1 else 0.0)
        whole = sum(by_share) + start * (1 + (crew if crew > 1 else 0)) + aligned
        disk = 2 * lines + PAGE + SHARE_OF_LINES * lines / max(1, self.plan.trials or 1) + kept
        return Estimate(
            rows=tuple(sorted(rows, key=lambda row: -row.seconds)),
            share_seconds=tuple(by_share),
            start_seconds=start + aligned,
            workers=crew,
            seconds=whole,
            wall_seconds=start * (2 if crew > 1 else 1) + aligned + spread(by_share, crew),
            worker_bytes=each,
            peak_bytes=each * crew + (self.costs.start_bytes + data if crew > 1 else 0.0),
            disk_bytes=disk,
            notes=self._notes(rows),
        )

    def _alignment(self, total: int) -> float:
        """Seconds of a private set intersection with that many ids at every party."""
        federation = self.source.federation
        if self.source.alignment is None or federation is None or self.plan.data.align != "psi":
            return 0.0
        return self.costs.laws["align"]["n"] * total * len(federation.parties)

    def _handed_out(self, total: int, workers: int) -> Iterator[tuple[int, _Piece]]:
        """Every stage with the number of the piece that it belongs to. Nobody trains a model twice: each worker keeps it."""
        count, number = sum(len(todo) for _, todo in self.work), 0
        for unit, todo in self.work:
            trained: Counter[object] = Counter()
            for part in parts(unit, tuple((case, "") for case in todo), count, workers):
                for piece in self._pieces(unit, [case for case, _ in part], total):
                    training = piece.row[2] == "training"
                    trained[piece.model] += training
                    if not training or trained[piece.model] <= workers:
                        yield number, piece
                number += 1

    def _pieces(self, unit: Unit, todo: list[Case], total: int) -> list[_Piece]:
        """The stages of some cases of a unit, as a `Workbench` goes through them."""
        protocol, pieces = unit.protocol.protocol(), []
        trained: set[object] = set()
        placed: set[object] = set()
        seen: set[object] = set()  # whose ceilings are there
        title = unit.protocol.title
        for case in todo:
            size, defence = self._size(unit, case, total), case.defence
            place = case.place
            model = model_of(unit, case)
            if place not in placed and self.source.recorded is None:
                placed.add(place)
                if model not in trained:
                    trained.add(model)
                    pieces.append(self._piece("train", title, defence, "training", size, model))
                if protocol.phase == "prediction":
                    pieces.append(self._piece("predict", title, defence, "prediction", size, model))
            if case.attack is None:
                curious = (place, self._curious(case.threat))
                again = 0.0 if curious in seen else 1.0
                pieces.append(_Piece(CEILING, (title, defence.title, CEILING), size, model, again))
                seen.add(curious)
                continue
            pieces.append(self._piece(f"attack/{case.attack.name}", title, defence, case.title, size, model))
            pieces.append(_Piece(f"score/{size.protocol}", (title, defence.title, "scoring"), size, model))
        return pieces

    def _piece(self, stage: str, title: str, defence: DefencePlan, attack: str, size: Size, model: object) -> _Piece:
        law = f"{stage}/{size.protocol}"
        return _Piece(law, (title, defence.title, attack), size, model, self.costs.factor(defence.name, law))

    def _size(self, unit: Unit, case: Case, total: int) -> Size:
        plan, protocol = self.plan, unit.protocol.protocol()
        columns = self.source.values.shape[1]
        train = total if self.source.recorded is not None else max(1, round(plan.train_share * total))
        rows = train if self.source.recorded is not None else max(1, total - train)
        limit = plan.rows or rows
        if protocol.phase == "training":
            train = rows = min(train, limit)
        unknown = self._unknown(case.unknown, case.threat, columns)
        classes = len(self.source.classes)
        return Size(train, min(rows, limit), columns, unknown, classes, unit.protocol.name, vars(protocol))

    def _unknown(self, share: float | None, threat: Threat, columns: int) -> int:
        federation = self.source.federation
        if federation is None:
            return max(1, round((share or 0.0) * columns))
        curious = self._curious(threat)
        return sum(len(party.columns) for party in federation.parties if party.name not in curious)

    def _curious(self, threat: Threat) -> tuple[str, ...]:
        """Who is curious; of columns that are dealt out at random there are two parties."""
        federation = self.source.federation
        if federation is None:
            return threat.curious("active", ["active", "passive"])
        return threat.curious(federation.active, [party.name for party in federation.parties])

    def _notes(self, rows: Sequence[Row]) -> tuple[str, ...]:
        notes = [f"{row.attack} on {row.protocol}: {row.note}" for row in rows if row.note]
        largest = self.costs.largest
        beyond = [f"{self.source.values.shape[1]:,} columns"] * (self.source.values.shape[1] > largest["columns"])
        beyond += [f"{self.source.values.shape[0]:,} rows"] * (self.source.values.shape[0] > largest["rows"])
        if beyond:
            notes.append(f"{' and '.join(beyond)} are beyond the measured range: extrapolated from measured costs")
        if self.source.recorded is not None:
            notes.append("a recorded run is not trained again: only attacks and scoring are counted")
        return tuple(dict.fromkeys(notes))


def _forecast(shared: _Shared, rows: int, transcripts: bool) -> Forecast:
    by_crew = {n: shared.priced(rows, n, transcripts) for n in CREWS}
    made, widest = by_crew[CREWS[0]], by_crew[CREWS[-1]]
    longest = max(widest.share_seconds, default=0.0)
    crews = tuple(Crew(n, one.wall_seconds / 3600) for n, one in by_crew.items())
    sample = _sample(shared, rows)
    over = made.worker_bytes / 1e9 > GIGABYTES
    late = longest / 3600 > HOURS
    advice = (
        f"`sample: {sample}` in the plan's data keeps both within these limits"
        if sample
        else "choose a cheaper protocol"
    )
    if over and (not late or made.worker_bytes / 1e9 / GIGABYTES > longest / 3600 / HOURS):
        limit = f"memory: a worker needs more than {GIGABYTES:.0f} GB; {advice}"
    elif late:
        limit = f"time: a piece that cannot be split takes more than {HOURS:.0f} hours; {advice}"
    elif made.start_seconds > max(longest, sum(made.share_seconds) / CREWS[-1]):
        hours = made.start_seconds / 3600
        limit = f"time: matching the rows is done once, {hours:.1g} hours however many workers there are"
    else:
        limit = f"none: more workers help up to {len(widest.share_seconds)}, the number of pieces"
    return Forecast(rows, crews, longest / 3600, made.worker_bytes, made.disk_bytes, limit)


def _sample(shared: _Shared, rows: int) -> int:
    """The most rows, to two digits, with which a share stays within hours and memory; 0 if even 1,000 do not."""
    low, high = 0, rows
    while high - low > max(1_000, low // 50):
        middle = (low + high) // 2
        made = shared.priced(middle, CREWS[-1], False)
        fits = max(made.share_seconds, default=0.0) <= HOURS * 3600 and made.worker_bytes <= GIGABYTES * 1e9
        low, high = (middle, high) if fits else (low, middle)
    digits = int(10 ** max(0, len(str(low)) - 2))
    return low // digits * digits
