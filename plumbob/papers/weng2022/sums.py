"""weng2022, Section 5 and half of Section 6: the reverse sum attack on SecureBoost.

Grids run without encryption (key_bits=0), which changes no sum; W7 and W10 have a setting each with real ciphertexts of
1,024 bits. Success is the share of rows with a code whose bin is found exactly. Magic numbers are those of Algorithm 1, lines 5
to 12: 30 random bits for each supergroup, identifiers in what they leave of 960. W7 also has Table 6's capacities.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from plumbob.attacks.sums._bin_bounds import values_in_place_of_bins
from plumbob.attacks.sums.bin_mapping import BinMapping
from plumbob.attacks.sums.code_decoding import CodeDecoding
from plumbob.attacks.sums.reverse_sum import ReverseSum
from plumbob.auditing.running.run import generator
from plumbob.data import registry
from plumbob.defences.sums.shared_indicators import SharedIndicators
from plumbob.federation import Federation, FloatArray, IntArray, split
from plumbob.papers.claims import CheckResult, Claim, ClaimFigure, Curve, Scale
from plumbob.papers.evidence import every, rises
from plumbob.papers.weng2022.federations import (
    SYNTHETIC,
    WENG_ROWS,
    CodedRun,
    accuracy,
    attacked,
    credit,
    student,
    synthetic,
)
from plumbob.papers.weng2022.leaked_bins import nearest_values
from plumbob.protocols.base import training
from plumbob.protocols.shared.gradient_plaintexts import HiddenCode
from plumbob.protocols.shared.hidden_codes import LabelledGroups, MagicNumbers
from plumbob.protocols.sums.secure_boost import SecureBoost
from plumbob.threats import THREATS, View, cut
from plumbob.transcript import COORDINATOR, Transcript

CODE_BASES = {"smoke": (2, 4, 8), "paper": (2, 4, 8, 16, 32)}
SUPERGROUPS = (2, 4)
PRINTED_CAPACITY = {2: 1_860, 4: 1_888}  # Table 6 at base 2, by supergroups
KNOWN_ROWS = (5, 10, 20, 40, 80, 160, 320)


def _magic(base: int, supergroups: int) -> MagicNumbers:
    """Algorithm 1: what the attack sends by default."""
    return ReverseSum(base=base, supergroups=supergroups).sends()


def _of_table_6(base: int, supergroups: int) -> MagicNumbers:
    """The capacities of Table 6, with the random bits that 960 leave beside them."""
    return MagicNumbers(base=base, supergroups=supergroups)


def _too_long(base: int, supergroups: int) -> MagicNumbers:
    """The capacities of Table 6 and Algorithm 1's random bits, which together have no room in 960."""
    return MagicNumbers(base=base, supergroups=supergroups, random_bits=30)


def _one_tree(code: HiddenCode | None, **settings: object) -> SecureBoost:
    """One split on sums of g and h apart, without a key, unless the settings say otherwise."""
    chosen = {"trees": 1, "depth": 1, "key_bits": 0, "packed": False} | settings
    return SecureBoost(code=code, **chosen)  # type: ignore[arg-type]  # checked there


def distributions(scale: Scale, seed: int) -> CheckResult:
    """W5: four distributions, bases and supergroups; base 2 and 4 once more with rows chosen by distribution."""
    rows, bases = WENG_ROWS[scale], CODE_BASES[scale] if scale == "paper" else (2, 4)
    measured: dict[str, object] = {}
    answers, figures = [], []
    for name in SYNTHETIC:
        curves = []
        for k in SUPERGROUPS:
            rates = [
                float(attacked(synthetic(name, rows, seed), _one_tree(_magic(b, k)), ReverseSum(), seed).success[0])
                for b in bases
            ]
            curves.append(Curve(f"k = {k}", [float(b) for b in bases], rates))
            measured[f"{name}, k={k}"] = rates
            answers.append(min(rates) > 0.95)
        spread = [ReverseSum(base=b, rows="by_distribution").sends() for b in (2, 4)]
        parties = synthetic(name, rows, seed)
        measured[f"{name}, k=2, rows by distribution, b=2 and 4"] = [
            float(attacked(parties, _one_tree(code), ReverseSum(), seed).success[0]) for code in spread
        ]
        figures.append(ClaimFigure(name, "base", "success rate", curves))
    why = (
        "holds at base 2 for every distribution; at larger bases a digit only counts rows, and with few bins (Bernoulli) no "
        "random bits make up for it: Table 6 of the paper itself has 38 % for a column of two bins at base 4"
    )
    expected = (
        f"success above 95 % for all four, whatever base and supergroups (rates by base {', '.join(map(str, bases))})"
    )
    return CheckResult(every(answers), measured, expected, 1, why, tuple(figures))


def numbers_of_bins(scale: Scale, seed: int) -> CheckResult:
    """W6: more bins, more success; N(0,1) as the caption of Figure 9 says, Student as its text does.

    3,000 rows of N(0,1) hold all rows that get a magic number at base 4; others would add nothing to the codes' sums.
    """
    bins = (4, 8, 16, 32, 64) if scale == "smoke" else (4, 8, 12, 16, 20, 24, 28, 32, 48, 64)
    trials = 2 if scale == "smoke" else 5
    measured: dict[str, object] = {}
    answers, curves = [], []
    for name, base, k in (("N(0,1)", 4, 4), ("student", 4, 2), ("student", 32, 2)):
        x, y = [], []
        for trial in range(trials):
            parties = synthetic(name, 3_000, seed + trial) if name != "student" else student(seed)
            loss = {"loss": "squared"} if name == "student" else {}
            for count in bins:
                run = attacked(parties, _one_tree(_magic(base, k), bins=count, **loss), ReverseSum(), seed + trial)
                wide = run.orders.counts >= 0.8 * min(count, int(run.orders.counts.max()))
                x.append(float(count))
                y.append(float(run.success[wide].mean()))
        means = [float(np.mean([b for a, b in zip(x, y, strict=True) if a == count])) for count in bins]
        measured[f"{name}, b={base}, k={k}"] = means
        curves.append(Curve(f"{name}, b={base}, k={k}", [float(b) for b in bins], means))
        if name == "N(0,1)":
            answers += [rises(x, y), means[bins.index(32)] > 0.5]
    why = (
        "with very few bins groups often lie whole in one, so rates fall before they rise; the paper names neither base nor "
        "columns here; on Student success grows from 8 bins on at base 4 and does not grow at base 32; only N(0,1) decides"
    )
    expected = f"success grows with the number of bins ({', '.join(map(str, bins))}), above 50 % near 30, on N(0,1)"
    figure = ClaimFigure("bins", "bins", "success rate", curves)
    return CheckResult(every(answers), measured, expected, trials, why, (figure,))


def capacities(scale: Scale, seed: int) -> CheckResult:
    """W7: Table 6, with Algorithm 1's code and with the one that has the table's capacities, both within 960 bits."""
    parties = credit(scale, seed)
    measured: dict[str, object] = {}
    answers, curves = [], []
    for words, made in (("Algorithm 1", _magic), ("Table 6", _of_table_6)):
        trends = []
        for k in SUPERGROUPS:
            runs = [attacked(parties, _one_tree(made(b, k)), ReverseSum(), seed) for b in CODE_BASES[scale]]
            for base, run in zip(CODE_BASES[scale], runs, strict=True):
                told = f"{run.coded:,} coded, {_span(run.right)} right, {_percent(run.success)}"
                measured[f"{words}, b={base}, k={k}"] = told
            shares, found = ([float(part.mean()) for part in parts] for parts in _success(runs))
            measured[f"{words}, k={k}, success by base"] = [round(share, 4) for share in shares]
            measured[f"{words}, k={k}, rows found by base"] = [round(rows) for rows in found]
            curves.append(Curve(f"{words}, k = {k}", [float(b) for b in CODE_BASES[scale]], shares))
            wanted = min(len(parties[0]), PRINTED_CAPACITY[k] if made is _of_table_6 else _magic(2, k).capacity(2))
            answers += [runs[0].coded == wanted, bool((runs[0].success == 1).all())]
            trends.append((shares, found))
        by_base = all((np.diff(shares) < 0).all() and (np.diff(found) > 0).all() for shares, found in trends)
        by_k = all(few[1][i] <= more[1][i] for few, more in pairwise(trends) for i in range(len(few[1])))
        measured[f"{words}, a larger base: lower rate, more rows"] = by_base
        measured[f"{words}, more supergroups: more rows"] = by_k
        answers += [by_base, by_k] if scale == "paper" else []
    measured |= _features_0_and_4(parties, seed)
    real_rows = 400 if scale == "smoke" else len(parties[0])
    small = parties[0].rows(np.arange(real_rows)), parties[1]
    real = attacked(small, _one_tree(_magic(2, 2), key_bits=1_024), ReverseSum(), seed)
    measured["b=2, k=2, real ciphertexts of 1,024 bits"] = f"{real.coded:,} coded, {_percent(real.success)}"
    answers.append(bool((real.success == 1).all()))
    expected = (
        "1,860 and 1,888 rows (by Algorithm 1: 1,800 and 1,680) at 100 % at base 2; every larger base lowers the rate and finds "
        "more rows, so do supergroups"
    )
    why = (
        "Table 6's capacities follow from 15 random bits for each supergroup within 960 (4 for b=2, k=4), not from the 30 of "
        "Algorithm 1; the rows that base 32 finds more of lie in columns of few bins, where naming the fullest bin finds as many"
    )
    return CheckResult(
        every(answers), measured, expected, 1, why, (ClaimFigure("credit", "base", "success rate", curves),)
    )


def _success(runs: list[CodedRun]) -> tuple[list[FloatArray], list[IntArray]]:
    """By run: the share of coded rows found in each column, and their number."""
    return [run.success for run in runs], [run.right for run in runs]


def _features_0_and_4(parties: tuple[Federation, Federation], seed: int) -> dict[str, object]:
    """The two columns that Table 6 has at 100 % for b = 4, k = 4, with either code and either choice of rows."""
    found: dict[str, object] = {}
    for words, code in (
        ("Algorithm 1, rows in order", _magic(4, 4)),
        ("Algorithm 1, rows by distribution", ReverseSum(base=4, supergroups=4, rows="by_distribution").sends()),
        ("Table 6", _of_table_6(4, 4)),
        ("30 random bits and Table 6's capacity, which takes 1,020 bits", _too_long(4, 4)),
    ):
        run = attacked(parties, _one_tree(code), ReverseSum(), seed)
        found[f"FID 0 and 4 at b=4, k=4 (100 % in the paper): {words}"] = [
            round(float(run.success[j]), 4) for j in (0, 4)
        ]
    return found


@lru_cache(maxsize=4)
def _all_orders(scale: Scale, seed: int) -> tuple[tuple[Federation, Federation], CodedRun]:
    """Every training row of credit ordered, one bit a row, as many trees as that takes."""
    parties = credit(scale, seed, 0.8)
    code = LabelledGroups()
    trees = -(-len(parties[0]) // code.capacity(2))
    return parties, attacked(parties, _one_tree(code, trees=trees, depth=3), CodeDecoding(nodes=False), seed)


def _with_known_rows(view: View, federation: Federation, known: IntArray) -> View:
    """The view of who has these rows of the federation complete."""
    return replace(view, auxiliary=federation.values[known])


def bounds(scale: Scale, seed: int) -> CheckResult:
    """W8: Table 7. A bin's bounds are inferred when a known row lies in it."""
    (federation, _), run = _all_orders(scale, seed)
    trials = 3 if scale == "smoke" else 20
    view, attack = cut(run.log, THREATS["active-training"]), BinMapping(decoder="code_decoding", ranks=False)
    shares = np.zeros((trials, len(KNOWN_ROWS), len(view.unknown)))
    for trial in range(trials):
        order = generator(seed, "known", trial).permutation(len(federation))
        for i, count in enumerate(KNOWN_ROWS):
            found = attack.bounds(_with_known_rows(view, federation, order[:count]), run.orders, order[:count])
            shares[trial, i] = [float((~np.isnan(one[:, 0])).mean()) for one in found]
    means = shares.mean(axis=0)
    found_shares = {
        f"{column.name}, {bins} bins": [round(float(v), 3) for v in means[:, j]]
        for j, (column, bins) in enumerate(zip(federation["passive"].columns, run.orders.counts.tolist(), strict=True))
    }
    growing = bool((np.diff(means.mean(axis=1)) >= 0).all())
    curves = [Curve(name, [float(k) for k in KNOWN_ROWS], list(values)) for name, values in found_shares.items()]
    measured: dict[str, object] = dict(found_shares)
    return CheckResult(
        every([growing, bool(means[-1].mean() > 0.99)]),
        measured,
        f"share of bins with bounds grows with the known rows ({', '.join(map(str, KNOWN_ROWS))}) to 100 %",
        trials,
        figures=(ClaimFigure("credit", "known rows", "share of bins", curves),),
    )


def classifier(scale: Scale, seed: int) -> CheckResult:
    """W9: Table 8. Trees on the leaked bins in place of the passive party's columns, against trees on the columns.

    The published decoder has the bins of the rows that fit into one code: the alternative trees are trained on these alone.
    """
    (federation, others), run = _all_orders(scale, seed)
    trees = SecureBoost(trees=10, depth=3, key_bits=0)
    first = accuracy(trees.train(federation, others, generator(seed, "classifier")))
    measured: dict[str, object] = {"trained on the columns": round(first, 4)}
    published = attacked((federation, others), _one_tree(MagicNumbers()), ReverseSum(), seed)
    coded = np.flatnonzero((published.orders.bins >= 0).all(axis=1))
    few = federation.rows(coded)
    bare = accuracy(trees.train(few, others, generator(seed, "classifier")))
    measured[f"trained on the columns of the {len(coded):,} rows with magic numbers"] = round(bare, 4)
    answers, small = [], []
    for count in KNOWN_ROWS[1:]:
        order = generator(seed, "known", 0).permutation(len(federation))
        second = _alternative(run, federation, others, order[:count], np.arange(len(federation)), seed)
        measured[f"{count} known rows"] = round(second, 4)
        answers.append(abs(second - first) <= 0.01)
        third = _alternative(published, federation, others, coded[:count], coded, seed)
        measured[f"{count} known rows, reverse sum"] = round(third, 4)
        small.append(third)
    measured["reverse sum, at worst below the original"] = round(first - min(small), 4)
    why = "one bit a row, read from as many trees as it takes, gives all rows; reverse sum gives those of one code"
    expected = "accuracy on other rows within 1 point of the original's (81.23 % in the paper)"
    return CheckResult(every(answers), measured, expected, 1, why)


def _alternative(
    run: CodedRun, federation: Federation, others: Federation, known: IntArray, rows: IntArray, seed: int
) -> float:
    """The accuracy on other rows of trees that were trained on these rows' own columns and leaked bins."""
    decoder = "code_decoding" if len(rows) == len(federation) else "reverse_sum"
    view = _with_known_rows(cut(run.log, THREATS["active-training"]), federation, known)
    found = BinMapping(decoder=decoder, ranks=False).bounds(view, run.orders, known)  # type: ignore[arg-type]  # one of both words
    leaked = _with_columns(federation, values_in_place_of_bins(run.orders, found)).rows(rows)
    tested = _with_columns(others, nearest_values(others["passive"].values, found))
    trees = SecureBoost(trees=10, depth=3, key_bits=0)
    return accuracy(trees.train(leaked, tested, generator(seed, "classifier")))


def evasive(scale: Scale, seed: int) -> CheckResult:
    """W10: with and without a code the same trees, to the last bit of every weight and score."""
    parties = credit(scale, seed, 0.8)
    measured: dict[str, object] = {}
    answers = []
    codes: list[HiddenCode] = [
        *(_magic(b, k) for b in (2, 16) for k in SUPERGROUPS),
        LabelledGroups(),
        LabelledGroups(size=42, width=20),
    ]
    trees = {"trees": 2 if scale == "smoke" else 5, "depth": 5, "precision": 40}
    bare = _one_tree(None, **trees).train(*parties, generator(seed, "training"))
    for code in codes:
        coded = _one_tree(code, **trees).train(*parties, generator(seed, "training"))
        answers.append(_model(bare) == _model(coded))
    measured["codes with the same trees and scores"] = f"{sum(answers)} of {len(codes)}"
    measured["accuracy with and without"] = round(accuracy(bare), 4)
    few = parties[0].rows(np.arange(300 if scale == "smoke" else 6_000)), parties[1]
    real = {"trees": 1, "depth": 3, "key_bits": 1_024, "precision": 32}
    logs = [_one_tree(code, **real).train(*few, generator(seed, "training")) for code in (None, MagicNumbers())]
    answers.append(_model(logs[0]) == _model(logs[1]))
    measured["same under real ciphertexts of 1,024 bits"] = answers[-1]
    numbers = student(seed)
    logs = [
        _one_tree(code, loss="squared", **real).train(*numbers, generator(seed, "training"))
        for code in (None, MagicNumbers())
    ]
    answers.append(_model(logs[0]) == _model(logs[1]))
    measured["same on student's grades, real ciphertexts of 1,024 bits"] = answers[-1]
    return CheckResult(
        every(answers), measured, "equal trees and scores with and without magic numbers", len(codes) + 2
    )


def mitigations_sums(scale: Scale, seed: int) -> CheckResult:
    """The half of W11 about sums: shared indicators, noise for differential privacy, and our blinding."""
    measured: dict[str, object] = {}
    parties = credit(scale, seed, 0.8)
    code = MagicNumbers(random_bits=4)
    bare = attacked(parties, _one_tree(code, depth=3, trees=3), ReverseSum(), seed)
    measured["no defence"] = f"{_percent(bare.success)}, accuracy {bare.accuracy:.4f}"
    answers = _shared_indicators(scale, seed, measured)
    for epsilon in (1.0, 0.01) if scale == "smoke" else (10.0, 1.0, 0.1, 0.01):
        run = attacked(parties, _one_tree(code, depth=3, trees=3, epsilon=epsilon), ReverseSum(), seed)
        measured[f"noise, epsilon {epsilon:g} a histogram"] = f"{_percent(run.success)}, accuracy {run.accuracy:.4f}"
        answers.append(bool((run.success == 1).all()))
    blind = attacked(parties, _one_tree(code, depth=3, trees=3, blinding=True), ReverseSum(), seed)
    measured["blinding (ours)"] = f"{_percent(blind.success)}, accuracy {blind.accuracy:.4f}"
    fullest = [np.bincount(column).max() / len(column) for column in blind.log.sealed("passive")["bins"].T]
    answers += [_model(blind.log) == _model(bare.log), bool((blind.success <= np.array(fullest) + 0.01).all())]
    measured["always naming the fullest bin"] = _percent(np.array(fullest))
    expected = "shared indicators and noise leave every order readable; blinding leaves no more than guessing and changes no tree"
    why = "noise is drawn in units of the gradients' precision; drawn over all bits it would be blinding that costs accuracy"
    return CheckResult(every(answers), measured, expected, 1, why)


def codes_of_ours(scale: Scale, seed: int) -> CheckResult:
    """P7: one bit a row orders everything in few trees; labelled groups read jointly order thousands in one."""
    measured: dict[str, object] = {}
    parties = credit(scale, seed)
    rows = len(parties[0])
    trees = -(-rows // 1_920)
    every_row = attacked(parties, _one_tree(LabelledGroups(), trees=trees), CodeDecoding(nodes=False), seed)
    measured[f"one bit a row, {trees} trees"] = f"{every_row.coded:,} of {rows:,} rows, {_percent(every_row.success)}"
    answers = [every_row.coded == rows, bool((every_row.success == 1).all()), trees <= 17]
    dense = synthetic("N(0,1)", max(4_100, rows), seed)
    bills = _bills(scale, seed)
    for size, width in ((42, 20), (64, 20))[: 1 if scale == "smoke" else 2]:
        code = LabelledGroups(size=size, width=width)
        for name, group in (("N(0,1), 32 bins", dense), ("credit, bills", bills)):
            for nodes in (False, True):
                if not nodes and (size > 42 or scale == "smoke"):
                    continue
                run = attacked(group, _one_tree(code, depth=5 if nodes else 1), CodeDecoding(nodes=nodes), seed)
                wide = run.orders.counts >= 30
                words = "all nodes" if nodes else "root"
                measured[f"{size} rows in {width} bits, {name}, one tree, {words}"] = (
                    f"{run.coded:,} rows, {_percent(run.success[wide])}"
                )
                if nodes and size == 42 and wide.any():
                    answers.append(bool((run.success[wide] >= 0.99).all()) and run.coded >= min(4_000, rows))
    expected = (
        "all rows exactly in at most 17 trees; at least 4,000 rows in one tree at 99 % on columns of 30 bins or more"
    )
    return CheckResult(every(answers), measured, expected, 1)


def _bills(scale: Scale, seed: int) -> tuple[Federation, Federation]:
    """Credit with two columns of many bins on the passive side."""
    table = registry.load("credit")
    hidden = ["BILL_AMT1", "BILL_AMT2"]
    federation = split(table, {"active": [n for n in table.names if n not in hidden], "passive": hidden}, "active")
    order = generator(seed, "bills").permutation(len(federation))[: max(4_100, WENG_ROWS[scale])]
    return federation.rows(order), federation.rows(order[:100])


def _shared_indicators(scale: Scale, seed: int, measured: dict[str, object]) -> list[bool]:
    """The same training with and without the defence: trees, and what reverse sum reads of the sums that are opened."""
    federation, others = credit(scale, seed, 0.8)
    few = federation.rows(np.arange(200 if scale == "smoke" else 1_000)), others
    bare = _one_tree(MagicNumbers(), depth=3, trees=2)
    runs = [attacked(few, p, ReverseSum(), seed) for p in (bare, training(SharedIndicators().protect(bare)))]
    same = _model(runs[0].log) == _model(runs[1].log)
    words = f"{runs[1].coded:,} rows, {_percent(runs[1].success)}, same trees: {same}"
    sent = " against ".join(f"{run.log.bytes_sent() / 1e6:.1f} MB" for run in reversed(runs))
    measured["secret-shared indicators"] = f"{words}; {sent} without encryption"
    return [same, bool((runs[1].success == 1).all())]


def _with_columns(federation: Federation, values: FloatArray) -> Federation:
    parties = tuple(replace(p, values=values) if p.name == "passive" else p for p in federation.parties)
    return replace(federation, parties=parties)


def _model(log: Transcript) -> dict[str, bytes]:
    return {k: v.tobytes() for k, v in log.sealed(COORDINATOR).items() if k.startswith("model/") or k == "other scores"}


def _span(numbers: IntArray) -> str:
    return f"{int(numbers.min()):,} to {int(numbers.max()):,}"


def _percent(shares: FloatArray) -> str:
    if not len(shares):
        return "no such column"
    low, high = float(shares.min()), float(shares.max())
    return f"{low:.1%}" if low == high else f"{low:.1%} to {high:.1%}"


CLAIMS: tuple[Claim, ...] = (
    Claim("weng2022", "W5", "Figure 8, Table 5", "reverse sum works on four distributions", distributions),
    Claim("weng2022", "W6", "Figure 9", "reverse sum improves with the number of bins", numbers_of_bins),
    Claim("weng2022", "W7", "Table 6", "reverse sum's capacity, and success by base and supergroups", capacities),
    Claim("weng2022", "W8", "Table 7", "few known rows reveal the bins' bounds", bounds),
    Claim("weng2022", "W9", "Table 8", "a classifier on leaked orders is as accurate as the original", classifier),
    Claim("weng2022", "W10", "Section 1", "the trees are the same with and without magic numbers", evasive),
    Claim("plumbob", "P7", "code decoding", "hidden codes order all rows in 17 trees, thousands in one", codes_of_ours),
)
