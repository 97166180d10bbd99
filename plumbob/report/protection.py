"""Which protection? The frontier in words, as charts and as a table, for the page and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from markupsafe import Markup

from plumbob.auditing.concluding.conclusion import Conclusion
from plumbob.auditing.concluding.defence_frontier import SMALL_LOSS, Estimate, Frontier, Mark, Option, Reason, cheapest
from plumbob.auditing.concluding.summarise import group
from plumbob.auditing.concluding.verdict_words import whole_percent
from plumbob.report import canvas, charts
from plumbob.report.answer import Answer
from plumbob.report.canvas import Axis
from plumbob.report.charts import Point, Spot
from plumbob.report.figures import Figure
from plumbob.report.phrases import count, defence_words, label, number, percent, sentence_list, short

MANY = 8  # situations beyond which a report shows only those without defence and with the recommended one
BOX_SHAPES = {True: "upended", False: "square"}  # by white box; no shape of a level
FAR = 2.5  # errors beyond so many times guessing are drawn at the edge
DEEP = 0.3  # accuracies further below the best are drawn at the edge
ALIKE = 0.02  # guesses that differ by less share a line
USEFUL = 0.005  # a change of AUC or calibration error that is worth a word


@dataclass(frozen=True)
class Measure:
    """What is drawn upwards: one number of a mark, with what guessing reaches."""

    words: str
    of: Callable[[Mark], Estimate]
    baseline: Callable[[Mark], float]
    attack: Callable[[Mark], str]
    more_is_worse: bool

    def worst(self, option: Option) -> Mark:
        pick = max if self.more_is_worse else min
        return pick(option.marks, key=lambda mark: self.of(mark).mean)


WORST = Measure("gain in the worst column", lambda m: m.worst_gain, lambda m: 0.0, lambda m: m.leak_attack, True)
LEAK = Measure("leak, mean over columns", lambda m: m.leak, lambda m: 0.0, lambda m: m.leak_attack, True)
ERROR = Measure("mean squared error", lambda m: m.error, lambda m: m.error_baseline, lambda m: m.error_attack, False)
BRANCHES = Measure("correct branches", lambda m: m.hits, lambda m: m.hits_baseline, lambda m: m.hits_attack, True)


def headline(frontier: Frontier) -> str:
    """The recommendation, whom it holds against, and what it costs."""
    return f"For {place(frontier)}, {_choice(frontier, frontier.chosen, frontier.reason)}"


def advice(frontier: Frontier) -> str:
    """The recommendation, and the one to fall back on where it hides the model."""
    known = frontier.option(frontier.if_known)
    if known is None:
        return headline(frontier)
    return f"{headline(frontier)} If the model is known: {_choice(frontier, known, frontier.if_known_reason)}"


def _choice(frontier: Frontier, option: Option | None, reason: Reason) -> str:
    if option is None:
        return _nothing(frontier)
    if reason == "unneeded":
        return f"no defence is needed: without one nothing leaks above {whole_percent(option.unseen)} % {_against(option)}."
    name, cost = short(option.defence), _cost(frontier, option)
    if reason == "safe":
        limit = f"no leak above {whole_percent(option.unseen)} % {_against(option)}"
        return f"take {name}: {limit}, {cost}.{_cheaper(frontier, option)}{_not_tested(frontier)}"
    bare = frontier.reference
    against = f", against {percent(bare.reach)} without" if bare is not None else ""
    return (
        f"no setting tried is shown to be safe. Of those that lose at most 1 point of accuracy, {name} leaves least to learn "
        f"{_against(option)}: {percent(option.reach)} of guessing’s error{against}, {cost}.{_not_tested(frontier)}"
    )


def _nothing(frontier: Frontier) -> str:
    """Why nothing is recommended, and what attacks found least under all the same."""
    gaps = sentence_list(list(dict.fromkeys(label(gap.threat) for option in frontier.options for gap in option.gaps)))
    if gaps:
        verb = "were" if " and " in gaps else "was"
        said = f"no setting tried is shown to be safe, and none is recommended: {gaps} {verb} not tested."
    else:
        said = (
            "no setting tried is shown to be safe, and none lowers what can be learnt for at most 1 point of accuracy."
        )
    bare, best = frontier.reference, least_found(frontier)
    if bare is None or best is None:
        return said
    noun = "tile" if pictures(frontier) else "column"
    less = f"find less, but still {_most(best)} of one {noun}{_learners(best)}"
    found = less if _worst(best) >= 0.005 else "gain nothing"
    return (
        f"{said} With {short(best.defence)} ({_cost(frontier, best)}) attacks {found}: "
        f"{_left(best, noun)}; without defence they find {_most(bare)}: {_left(bare, noun)}. Each {noun} counts at its worst "
        f"over the threats that were tested. The mean leak is {percent(best.worst.leak.mean)} in place of "
        f"{percent(bare.worst.leak.mean)}."
    )


def idle_words(conclusion: Conclusion) -> list[str]:
    """Defences that leave everything as it is, protocol by protocol: what leaks without them leaks with them."""
    return [
        f"For {label(protocol)} on {short(data)}, {sentence_list([short(defence) for _, _, defence in some])} "
        f"{'changes' if len(some) == 1 else 'change'} nothing: messages are as without defence, and what leaks there leaks "
        "all the same."
        for (data, protocol), some in group(conclusion.idle, lambda one: one[:2]).items()
    ]


def _left(option: Option, noun: str) -> str:
    """What attacks found under a defence, with what is not known."""
    worst = option.counts
    open_ = f", {worst.undecided} {'is' if worst.undecided == 1 else 'are'} undecided" if worst.undecided else ""
    return f"{worst.leaking} of {count(worst.columns, noun)} {'leaks' if worst.leaking == 1 else 'leak'}{open_}"


def least_found(frontier: Frontier) -> Option | None:
    """Of options that lose at most one point of accuracy, the one under which attacks found clearly less than without."""
    bare = frontier.reference
    if bare is None:
        return None
    cheap = [one for one in frontier.options if bare.accuracy.less(one.accuracy).mean <= SMALL_LOSS]
    best = min(cheap, key=lambda one: one.worst.leak.mean, default=bare)
    spared = bare.worst.leak.less(best.worst.leak)
    return best if spared.mean - spared.margin > 0 and best is not bare else None


def _worst(option: Option) -> float:
    """What attacks take of the column that leaks most."""
    return max(mark.worst_gain.mean for mark in option.marks)


def _most(option: Option) -> str:
    return f"up to {percent(_worst(option))}"


def _learners(option: Option) -> str:
    """That learners gain less from the messages than attacks found: then theirs is no bound of what leaks."""
    known = [mark.ceiling for mark in option.marks if mark.ceiling is not None]
    if not known or max(known) >= _worst(option):
        return ""
    return f" (learners gain {percent(max(known))} from the messages in the mean, which bounds no attack)"


def _against(option: Option) -> str:
    """The threats that a recommendation was tested against."""
    threats = [label(mark.threat) for mark in option.marks]
    return f"against {sentence_list(threats)}"


def _not_tested(frontier: Frontier) -> str:
    """What the recommendation does not speak of."""
    gaps = frontier.untested
    return f" Not tested: {sentence_list([label(gap) for gap in gaps])}." if gaps else ""


def _cheaper(frontier: Frontier, option: Option) -> str:
    """What could be had instead of a dear option."""
    loss = frontier.lost(option)
    pool = [other for other in frontier.options if other.hidden == option.hidden or other.defence == "none"]
    cheap = cheapest(pool)
    if loss is None or loss.mean <= SMALL_LOSS or cheap is None or cheap is option:
        return ""
    left = f"leaves {verdict(cheap)} {'tiles' if pictures(frontier) else 'columns'} leaking"
    return f" {short(cheap.defence)}, {_cost(frontier, cheap)}, {left}."


def shown(found: Sequence[Answer], choices: Sequence[Frontier]) -> list[Answer]:
    """The answers to show in full: all of few; of many those without defence and with the recommended one."""
    if len(found) <= MANY or not choices:
        return list(found)
    taken = {(choice.data, choice.protocol, choice.recommended) for choice in choices}
    tried = {(choice.data, choice.protocol) for choice in choices if choice.reference is not None}

    def kept(answer: Answer) -> bool:
        place = answer.situation
        here = (place.data, place.protocol)
        return here not in tried or place.defence == "none" or (*here, place.defence) in taken

    return [answer for answer in found if kept(answer)]


def place(frontier: Frontier) -> str:
    return f"{label(frontier.protocol)} on {short(frontier.data)}"


def figure(frontier: Frontier) -> Figure:
    """Accuracy against the gain in the worst column, and against what all leak in the mean (of trees: correct branches, of
    pictures: error), which can hide a column.
    """
    mean = BRANCHES if _metric(frontier) == "branches" else ERROR if pictures(frontier) else LEAK
    measures = (mean,) if pictures(frontier) else (WORST, mean)
    drawings = tuple(_drawing(frontier, measure) for measure in measures)
    return Figure(place(frontier), f"{advice(frontier)} {_beyond(frontier)}".strip(), drawings)


def pictures(frontier: Frontier) -> bool:
    return all(mark.pictures for option in frontier.options for mark in option.marks)


def status(frontier: Frontier, option: Option) -> str:
    """Recommended, dominated and by what, or neither."""
    if option.defence == frontier.recommended:
        return "recommended"
    if option.defence == frontier.if_known:
        return "if the model is known"
    return f"dominated by {short(option.dominated_by)}" if option.dominated_by else ""


def verdict(option: Option) -> str:
    """How many columns leak, each at its worst over all threats that were tested."""
    worst = option.counts
    parts = [f"{worst.leaking} of {worst.columns}"]
    others = ((worst.undecided, "undecided"), (worst.untested, "not tested"), (worst.clear, "no leak"))
    parts += [f"{number} {said}" for number, said in others if number]
    parts += [f"{count(len(option.gaps), 'threat')} not tested"] if option.gaps else []
    return ", ".join(parts)


def worst_words(mark: Mark) -> tuple[str, str]:
    """The gain in the column that leaks most and its name; where none leaks, what may have gone unseen."""
    if mark.worst_column:
        return percent(mark.worst_gain.mean), short(mark.worst_column)
    return f"below {whole_percent(mark.worst_gain.margin)} %", ""


def box(mark: Mark) -> str:
    return "white box" if mark.white_box else "black box"


def points(loss: Estimate) -> str:
    """Accuracy lost, in points.

    >>> points(Estimate(0.0123, 0.004, {0: 0, 1: 1})), points(Estimate(0.0, 0.0, {0: 0}))
    ('1.2 ± 0.4', '0')
    """
    shown = _signed(100 * loss.mean, 1)
    return shown if len(loss.trials) < 2 or loss.margin < 5e-4 else f"{shown} ± {100 * loss.margin:.1f}"


def share(value: Estimate, digits: int = 0) -> str:
    """A share with its interval, where there is one.

    >>> share(Estimate(0.968, 0.008, {0: 0.96, 1: 0.976}), 1), share(Estimate(0.2, 0.0, {0: 0.2}))
    ('96.8 ± 0.8 %', '20 %')
    """
    if abs(value.mean) < 5e-4 and value.margin < 5e-4:
        return "0 %"
    margin = f" ± {100 * value.margin:.{digits}f}" if len(value.trials) > 1 else ""
    return f"{100 * value.mean:.{digits}f}{margin} %"


def seconds(added: float) -> str:
    return _signed(added, 2)


def size(added: float) -> str:
    """Bytes, in the unit that suits them.

    >>> size(0.0), size(16440.0), size(-300.0)
    ('0', '16 kB', '−300 B')
    """
    sign, value = ("−" if added < 0 else ""), abs(added)
    if value < 1000:
        return f"{sign}{value:.0f} B" if value >= 0.5 else "0"
    return f"{sign}{value / 1e6:.1f} MB" if value >= 1e6 else f"{sign}{value / 1e3:.0f} kB"


def added(frontier: Frontier, option: Option) -> tuple[float, float, float] | None:
    """Seconds of training, seconds of prediction and bytes more than without defence."""
    bare = frontier.reference
    if bare is None:
        return None
    return (
        option.train_seconds - bare.train_seconds,
        option.predict_seconds - bare.predict_seconds,
        option.bytes_sent - bare.bytes_sent,
    )


def _cost(frontier: Frontier, option: Option) -> str:
    loss = frontier.lost(option)
    if not option.trained:
        return "at a cost in accuracy that is not known, since the parameters stayed as they were"
    coarser = _less_useful(frontier, option)
    if loss is None:
        return f"at an accuracy of {percent(option.accuracy.mean)}"
    if abs(loss.mean) < 5e-4:
        return f"class accuracy unchanged{coarser}"
    if loss.mean < 0:
        return f"and accuracy is {points(Estimate(-loss.mean, loss.margin, loss.trials))} points higher{coarser}"
    return f"at a cost of {points(loss)} points of accuracy{coarser}"


def _less_useful(frontier: Frontier, option: Option) -> str:
    """What else is lost than the class: how well scores rank rows, and whether they mean what they say.

    A defence may keep every class and still leave scores that nobody can decide by.
    """
    bare = frontier.reference
    if bare is None or bare is option or not (bare.auc and option.auc and bare.calibration and option.calibration):
        return ""
    ranks, means = bare.auc.less(option.auc).mean, option.calibration.less(bare.calibration).mean
    parts = [f"AUC {bare.auc.mean:.3f} to {option.auc.mean:.3f}"] if abs(ranks) >= USEFUL else []
    if abs(means) >= USEFUL:
        parts.append(f"calibration error {percent(bare.calibration.mean)} to {percent(option.calibration.mean)}")
    return f"; scores change: {sentence_list(parts)}" if parts else "; scores as useful as before"


def _signed(value: float, digits: int) -> str:
    text = f"{abs(value):.{digits}f}"
    if float(text) == 0:
        return "0"
    return f"−{text}" if value < 0 else text


def _metric(frontier: Frontier) -> str:
    return frontier.options[0].marks[0].metric


def _drawing(frontier: Frontier, measure: Measure) -> Markup:
    options = frontier.options
    spots = [_spot(frontier, option, mark, measure) for option in options for mark in option.marks]
    guesses = _guesses(options, measure)
    x = _across([spot.x for spot in spots])
    y = _up(measure, [spot.y for spot in spots], [value for _, value in guesses])
    return charts.spot_chart(spots, guesses, x, y, f"Accuracy against {measure.words}: {place(frontier)}")


def _spot(frontier: Frontier, option: Option, mark: Mark, measure: Measure) -> Spot:
    chosen = option.defence == frontier.recommended
    faded = bool(option.dominated_by) and option.defence not in (frontier.recommended, frontier.if_known)
    named = mark is measure.worst(option) and (not faded or option.defence == "none")
    title = (
        f"{defence_words(option.defence)}, {box(mark)}: accuracy {percent(option.accuracy.mean)}, {measure.words} "
        f"{_shown(measure, measure.of(mark))} ({label(measure.attack(mark))})"
    )
    name = f"✓ {short(option.defence)}" if chosen else short(option.defence)
    return Spot(
        x=_point(option.accuracy, title),
        y=_point(measure.of(mark), title),
        shape=BOX_SHAPES[mark.white_box],
        level=mark.level,
        name=name if named else "",
        faded=faded,
        chosen=chosen and mark is measure.worst(option),
    )


def _point(value: Estimate, title: str) -> Point:
    return Point(0.0, value.mean, value.mean - value.margin, value.mean + value.margin, title)


def _shown(measure: Measure, value: Estimate) -> str:
    return number(value.mean) if measure is ERROR else percent(value.mean)


def _guesses(options: Sequence[Option], measure: Measure) -> list[tuple[str, float]]:
    """What guessing reaches, once per box where they differ: auxiliary rows make a better guess."""
    found = {}
    for white in (True, False):
        values = [measure.baseline(mark) for option in options for mark in option.marks if mark.white_box == white]
        if values:
            found[white] = fmean(values)
    if len(found) == 2 and abs(found[True] - found[False]) <= ALIKE * max(found.values()):
        return [("guessing", found[True])]
    names = {True: "guessing, white box", False: "guessing, black box"}
    return [(names[white] if len(found) == 2 else "guessing", value) for white, value in found.items()]


def _across(values: Sequence[Point]) -> Axis:
    best = max(values, key=lambda value: value.y)
    low = max(min(value.y for value in values), best.y - DEEP)
    high = best.high
    room = max(0.01, 0.06 * (high - low))
    return Axis("accuracy of what is released", max(0.0, low - room), min(1.0, high + room), percent=True)


def _up(measure: Measure, values: Sequence[Point], guesses: Sequence[float]) -> Axis:
    if measure.more_is_worse:
        low = min([*(value.y for value in values), *guesses]) - 0.05
        low = 0.0 if measure in (WORST, LEAK) else max(0.0, 0.1 * int(10 * low))
        return Axis(f"{measure.words} (higher: more is learnt)", low, 1.0, percent=True)
    top = max([*(value.high for value in values), *guesses])
    return Axis(f"{measure.words} (lower: more is learnt)", 0.0, canvas.nice_top(min(top, FAR * max(guesses))))


def _beyond(frontier: Frontier) -> str:
    """What lies outside of the chart and is drawn at its edge."""
    values = [option.accuracy.mean for option in frontier.options]
    words = []
    if min(values) < max(values) - DEEP:
        words.append("Accuracies far below the best are drawn at the left edge.")
    top = FAR * max(value for _, value in _guesses(frontier.options, ERROR))
    far = any(mark.error.mean > top for option in frontier.options for mark in option.marks)
    if far and pictures(frontier):
        words.append("Errors far above guessing are drawn at the upper edge.")
    return " ".join(words)
