"""The ceiling: how much better a column can be guessed from the messages than without them, by whoever has everybody else's rows.

An attack shows what was learnt; this shows what could be. A learner that was trained on all other complete rows predicts the
column of each row i twice, from the curious parties' own columns, and from these with all messages about the row:
    own = 1 - sum (x_i - g(own_i))^2 / sum (x_i - mean)^2,    full: the same with g(own_i, messages_i),    gain = full - own
Each time the best of a few learners counts, chosen on other rows than it is judged on. The gain is usable information (Xu et
al., ICLR 2020): what is not mere imputation (Jayaraman and Evans, CCS 2022). It is of these learners. Where algebra finds
more, the attack's figure stands.

Columns are clipped at their 1 and 99 % quantiles first. A long tail would leave the variance, and so all three figures, to a few
rows. Clipping keeps the column's units, in which attacks are judged; ranks would not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plumbob.attacks.row_messages import RowMessages, row_messages
from plumbob.federation import BoolArray, FloatArray, IntArray
from plumbob.scoring._best_learner import Chosen, Judge
from plumbob.scoring._repeated_rows import first_of_each
from plumbob.scoring.column_ceiling import CEILING, LABEL, ColumnCeiling
from plumbob.scoring.countable import bits_of, least_error, open_dimensions
from plumbob.scoring.evidence import LEAST_EFFECTIVE, effective_rows
from plumbob.scoring.label_room import label_room
from plumbob.scoring.proven import most_hits, private
from plumbob.scoring.score import Score
from plumbob.scoring.truth import Truth
from plumbob.threats import View

ROWS = 2_000  # learners see at most so many: their time grows with them
FEWEST = 20  # rows below which nothing is learnt
TAIL = 0.01  # share of a column's rows that is clipped at either end
Z = 1.96
UNSEEN = 4.0  # over the number of rows: a gain that 95 % of samples do not tell from none (chi-squared, one degree)
AT_A_TIME = 32  # columns whose predictions are held at once
PIXELS = 24  # of a tile that stand for all of them


@dataclass(frozen=True)
class _Target:
    """A column, the pixels of a tile, or the label's classes: columns of the table that belong together."""

    name: str
    part: slice
    label: IntArray | None = None
    base: float = 1.0  # error of the best constant

    def errors(self, predicted: FloatArray, table: FloatArray) -> FloatArray:
        """By row: squared, or 1 for a wrong class."""
        if self.label is not None:
            return np.asarray(predicted.argmax(axis=1) != self.label, dtype=np.float64)
        return np.asarray(((predicted - table[:, self.part]) ** 2).mean(axis=1))


def learnable(view: View, truth: Truth, rng: np.random.Generator) -> tuple[ColumnCeiling, ...]:
    """One ceiling for each unknown column (of pictures: each tile), and for the label where the active party is not curious."""
    picked = _picked(view, truth, rng)
    told = row_messages(view)
    if truth.filled is None:
        return _learnt(view, truth, told, picked, rng)
    found = list(_learnt(view, truth.only(np.flatnonzero(~truth.filled[picked].any(axis=0))), told, picked, rng))
    for columns, rows in _alike(truth.filled[picked]):
        found += _learnt(view, truth.only(columns), told, picked[rows], rng, labelled=False)
    place = {name: j for j, name in enumerate(truth.names)}
    return tuple(sorted(found, key=lambda one: place.get(one.name, len(place))))


def _picked(view: View, truth: Truth, rng: np.random.Generator) -> IntArray:
    """Rows that are looked at; of people who are there several times one, for what they know of themselves is no learning."""
    drawn = rng.permutation(len(view.own))
    people = first_of_each(view.own, truth.values)
    if people is not None:
        drawn = drawn[np.isin(drawn, people)]
    return np.sort(drawn[:ROWS])


def _alike(filled: BoolArray) -> list[tuple[IntArray, BoolArray]]:
    """Columns in which the same cells were filled, and the other rows."""
    patterns, which = np.unique(filled, axis=1, return_inverse=True)
    gaps = np.flatnonzero(patterns.any(axis=0))
    return [(np.flatnonzero(which.ravel() == k), ~patterns[:, k]) for k in gaps]


def _learnt(
    view: View, truth: Truth, told: RowMessages, picked: IntArray, rng: np.random.Generator, *, labelled: bool = True
) -> tuple[ColumnCeiling, ...]:
    """The ceilings of columns on some rows, and of the label unless it is not wanted."""
    table, targets = _targets(view, truth, picked, labelled)
    if not targets or len(picked) < FEWEST:
        return tuple(_described(_unlearnt(target, len(picked)), told) for target in targets)
    held = [truth.label[picked]] if truth.label is not None and view.active in view.curious else []
    own = np.hstack([view.own[picked], *(np.eye(len(view.classes))[label] for label in held)])
    told = told.of(picked)
    bits = None if told.cells is None else bits_of(told.cells, own)
    judge = Judge(own, told, rng)
    made = []
    for group in _groups(targets):
        columns = slice(group[0].part.start, group[-1].part.stop)
        parts = [slice(t.part.start - columns.start, t.part.stop - columns.start) for t in group]
        for target, chosen in zip(group, judge.choose(table[:, columns], parts), strict=True):
            one = _described(_ceiling(target, chosen, table), told)
            made.append(_counted(one, target, chosen, table, bits))
            if target.label is not None and told.features.shape[1]:
                made[-1] = replace(made[-1], room=label_room(own, told.features, target.label, rng.spawn(1)[0]))
    return tuple(_of_view(one, view, truth) for one in made)


def ceiling_score(view: View, truth: Truth, rng: np.random.Generator) -> Score:
    """The ceilings as a score, which findings hold: no attack was made, so that nothing else in it says anything."""
    return Score(
        metric=CEILING,
        error=0.0,
        baselines={},
        gain=0.0,
        r2=0.0,
        bound=0.0,
        sharp_bound=0.0,
        attack_accuracy=None,
        constant_accuracy=None,
        row_error_quantiles=(0.0, 0.0, 0.0),
        candidates=None,
        rows=len(truth.values),
        columns=(),
        ceilings=learnable(view, truth, rng),
    )


def clipped(values: FloatArray) -> FloatArray:
    """Columns between their 1 and 99 % quantiles; a rare value stays apart from the others.

    >>> clipped(np.array([[0.0]] * 200 + [[0.9]])).max()
    np.float64(0.9)
    """
    return np.stack([_clipped(column) for column in values.T], axis=1) if values.shape[1] else values


def _clipped(column: FloatArray) -> FloatArray:
    low, middle, high = np.quantile(column, [TAIL, 0.5, 1 - TAIL])
    if high <= middle:
        high = column[column > middle].min(initial=np.inf)
    if low >= middle:
        low = column[column < middle].max(initial=-np.inf)
    return np.asarray(np.clip(column, low, high))


def _targets(view: View, truth: Truth, picked: IntArray, labelled: bool) -> tuple[FloatArray, list[_Target]]:
    """All columns to predict, standardised and side by side, and which of them belong together."""
    names, parts = list(truth.names), [np.array([j]) for j in range(len(truth.names))]
    if truth.tiles:
        names = [tile.name for tile in truth.tiles]
        parts = [t.pixels[np.unique(np.linspace(0, len(t.pixels) - 1, PIXELS).astype(int))] for t in truth.tiles]
    values = clipped(truth.values[picked][:, np.concatenate([np.zeros(0, dtype=np.int64), *parts])])
    spread = values.std(axis=0)
    table = (values - values.mean(axis=0)) / np.where(spread > 1e-12, spread, 1.0)
    ends = np.cumsum([len(part) for part in parts]).tolist()
    targets = [
        _Target(name, slice(end - len(part), end), base=float((table[:, end - len(part) : end] ** 2).mean()))
        for name, part, end in zip(names, parts, ends, strict=True)
    ]
    if not labelled or truth.label is None or view.active in view.curious:
        return table, targets
    label, first = truth.label[picked], table.shape[1]
    classes = np.eye(len(view.classes))[label]
    usual = float(np.bincount(label).max()) / max(1, len(label))
    return np.hstack([table, classes]), [
        *targets,
        _Target(LABEL, slice(first, first + len(view.classes)), label, 1 - usual),
    ]


def _groups(targets: list[_Target]) -> list[list[_Target]]:
    """Neighbours together, as many as are predicted at once."""
    groups: list[list[_Target]] = []
    for target in targets:
        if not groups or target.part.stop - groups[-1][0].part.start > AT_A_TIME:
            groups.append([])
        groups[-1].append(target)
    return groups


def _ceiling(target: _Target, chosen: Chosen, table: FloatArray) -> ColumnCeiling:
    """The three shares, and the interval of the gain over rows."""
    rows = len(table)
    if target.base <= 1e-12:  # nothing varies
        return _unlearnt(target, rows, high=0.0)
    alone = target.errors(chosen.own, table)
    own = max(0.0, 1 - float(alone.mean()) / target.base)
    if chosen.told is None:
        return replace(_unlearnt(target, rows), own=own, full=own)
    gain, margin = _spared(alone - target.errors(chosen.taken, table), target.base)
    other, other_margin = _spared(alone - target.errors(chosen.told, table), target.base)
    high = max(gain + margin, other + other_margin, UNSEEN / rows)
    if _rests_on(target, table) < LEAST_EFFECTIVE:
        high = 1.0  # nobody learns from so few what a rare value looks like, and no interval of them is honest
    shown = min(1 - own, max(0.0, gain))
    low = gain - max(margin, UNSEEN / rows)  # two learners differ by chance, even if messages say nothing
    return ColumnCeiling(target.name, own, own + shown, shown, low, min(1.0, high), chosen.learner, rows, _kind(target))


def _rests_on(target: _Target, table: FloatArray) -> float:
    """How many rows the error of the best constant rests on: of a rare value as many as have it."""
    if target.label is None:
        return effective_rows((table[:, target.part] ** 2).mean(axis=1))
    return target.base * len(table)


def _spared(errors: FloatArray, base: float) -> tuple[float, float]:
    """The mean of what is spared as a share of the base, and its margin."""
    return float(errors.mean()) / base, Z * float(errors.std(ddof=1)) / np.sqrt(len(errors)) / base


def _unlearnt(target: _Target, rows: int, high: float = 1.0) -> ColumnCeiling:
    """Where no message goes row by row, or rows are too few: nothing is known of the gain."""
    return ColumnCeiling(target.name, 0.0, 0.0, 0.0, 0.0, high, "", rows, _kind(target))


def _kind(target: _Target) -> str:
    return "column" if target.label is None else "label"


def _described(one: ColumnCeiling, told: RowMessages) -> ColumnCeiling:
    """With what learners did not see. Where no message differs between rows, and none was left out, nothing can be learnt."""
    silent = not one.learner and not told.uncovered and one.rows >= FEWEST
    return replace(one, covers=not told.uncovered, uncovered=told.uncovered, high=0.0 if silent else one.high)


def _counted(
    one: ColumnCeiling, target: _Target, chosen: Chosen, table: FloatArray, bits: float | None
) -> ColumnCeiling:
    """With what releases of few values allow; the error only of single columns that vary."""
    width = target.part.stop - target.part.start
    if bits is None or target.label is not None or width > 1 or target.base <= 1e-12:
        return replace(one, bits=bits)
    left = (table[:, target.part] - chosen.own)[:, 0]
    return replace(one, bits=bits, least=min(1.0, least_error(left, bits) / target.base))


def _of_view(one: ColumnCeiling, view: View, truth: Truth) -> ColumnCeiling:
    """With what equations and guarantees say, of columns."""
    if one.target == "label":
        return one
    guarantee = private(view)
    place = None if truth.tiles or guarantee is None else truth.names.index(one.name)
    proven = None if place is None or guarantee is None else most_hits(truth.column(place), guarantee)
    return replace(one, open_=open_dimensions(view), proven=proven)
