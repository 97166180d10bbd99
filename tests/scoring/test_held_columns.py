"""What the curious parties hold already is named, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbob.attacks.base import Guess
from plumbob.federation import Column, Federation, Party
from plumbob.protocols.base import opened
from plumbob.scoring.held_columns import held_columns
from plumbob.scoring.score import score
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, Threat, cut
from plumbob.transcript import Transcript

NAMES = ("income", "wealth", "smoker", "region", "segment", "age")


def unit(values: object) -> np.ndarray:
    column = np.asarray(values, dtype=np.float64)
    return (column - column.min()) / np.ptp(column)


def own_table(rows: int = 300, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    parts = [
        rng.random(rows),
        rng.lognormal(size=rows),
        rng.integers(0, 2, rows),
        rng.integers(0, 4, rows),
        rng.integers(0, 6, rows),
        rng.integers(18, 80, rows),
    ]
    return np.column_stack([unit(part) for part in parts])


def held(hidden: object, own: np.ndarray | None = None, grid: float = 0.0) -> str:
    own = own_table() if own is None else own
    return held_columns(own, NAMES[: own.shape[1]], unit(hidden)[:, None], grids=np.array([grid]))[0]


INCOME, WEALTH, SMOKER, REGION, SEGMENT, AGE = own_table().T
CODES = np.random.default_rng(1).permutation(24).reshape(4, 6)


@pytest.mark.parametrize(
    ("hidden", "words"),
    [
        (INCOME, "a copy of 'income'"),
        (SMOKER, "a copy of 'smoker'"),
        (1 - INCOME, "a linear map of 'income'"),
        (1 - SMOKER, "a linear map of 'smoker'"),
        (2 * INCOME - 3 * WEALTH, "a linear map of 'income' and 'wealth'"),
        (INCOME + WEALTH + REGION + SEGMENT, "a linear map of 4 own columns"),
        (np.array([0.3, 1.0, 0.0, 0.7])[np.rint(3 * REGION).astype(int)], "a code of 'region'"),
        (np.digitize(AGE, [0.2, 0.5, 0.8]), "a code of 'age'"),
        (INCOME > 0.3, "bands of 'income'"),
        ((INCOME > 0.3) & (INCOME < 0.6), "bands of 'income'"),
        (np.log(0.05 + WEALTH), "a monotone function of 'wealth'"),
        (np.exp(3 * INCOME), "a monotone function of 'income'"),
        ((INCOME - 0.5) ** 2, "a function of 'income'"),
        (np.logical_xor(SMOKER, REGION > 0.5), "a code of 'smoker' and 'region'"),
        (SMOKER * (REGION > 0.9), "a code of 'smoker' and 'region'"),
        (CODES[np.rint(3 * REGION).astype(int), np.rint(5 * SEGMENT).astype(int)], "a code of 'region' and 'segment'"),
        (np.logical_xor(np.logical_xor(SMOKER, REGION > 0.5), SEGMENT > 0.5), "a code of 3 own columns"),
    ],
)
def test_a_function_of_own_columns_is_named(hidden: np.ndarray, words: str) -> None:
    assert held(hidden) == words


def test_a_map_that_is_rounded_is_one() -> None:
    """Pounds with one decimal from kilograms."""
    pounds = np.round(2.2046 * (50 + 50 * INCOME), 1)
    assert held(pounds, grid=0.1 / np.ptp(pounds)) == "a linear map of 'income', rounded"


def test_indicators_of_a_category_give_its_code() -> None:
    indicators = np.eye(4)[np.rint(3 * REGION).astype(int)]
    words = held_columns(indicators, ("r1", "r2", "r3", "r4"), CODES[:, :1][np.rint(3 * REGION).astype(int)] / 23.0)
    assert words == ("a linear map of 3 own columns",) or words[0].startswith("a linear map of")


@pytest.mark.parametrize(
    "hidden",
    [
        INCOME + 0.001 * np.random.default_rng(2).normal(size=300),
        np.where(np.arange(300) < 3, 1 - SMOKER, SMOKER),
        np.where(np.arange(300) < 2, INCOME[::-1], INCOME),
        (INCOME - 0.5) ** 2 + 0.01 * np.random.default_rng(3).normal(size=300),
        np.cumsum(np.random.default_rng(4).exponential(size=300))[np.argsort(np.argsort(INCOME))],
        np.sin(60 * INCOME),
        (INCOME + 0.05 * np.random.default_rng(5).normal(size=300)) > 0.5,
        np.where(np.arange(300) % 20, np.rint(3 * REGION), 0),
    ],
    ids=["noise", "a few flipped", "two changed", "noisy square", "same order", "many turns", "noisy limit", "1 in 20"],
)
def test_a_column_that_is_nearly_a_function_is_not_held(hidden: np.ndarray) -> None:
    assert not held(hidden)


def drawn(rng: np.random.Generator, rows: int) -> np.ndarray:
    """A column as tables have them: even, heavy-tailed, two-valued, rare, whole numbers, rounded."""
    kinds = [
        lambda: rng.random(rows),
        lambda: rng.lognormal(size=rows),
        lambda: rng.standard_cauchy(rows),
        lambda: rng.integers(0, 2, rows),
        lambda: rng.random(rows) < rng.choice([0.01, 0.05, 0.2]),
        lambda: rng.integers(0, rng.integers(3, 60), rows),
        lambda: rng.poisson(rng.choice([0.3, 1.0, 5.0]), rows),
        lambda: np.round(rng.normal(size=rows), rng.integers(0, 3)),
    ]
    column = np.asarray(kinds[rng.integers(len(kinds))](), dtype=np.float64)
    return unit(column) if np.ptp(column) else np.zeros(rows)


@given(st.integers(0, 2**32), st.sampled_from([12, 50, 80, 200]), st.sampled_from([1, 4, 40]))
def test_an_honest_column_is_never_held(seed: int, rows: int, known: int) -> None:
    """However many own columns there are, and though it hangs together with one of them."""
    rng = np.random.default_rng(seed)
    own = np.column_stack([drawn(rng, rows) for _ in range(known)])
    column = own[:, rng.integers(known)]
    noisy = [column + s * rng.normal(size=rows) for s in (0.03, 0.3)]
    swapped = np.where(rng.random(rows) < 0.1, rng.permutation(column), column)
    hidden = [drawn(rng, rows), drawn(rng, rows), *(unit(one) for one in noisy)]
    if (swapped != column).sum() > 3:
        hidden.append(swapped)
    names = [f"c{i}" for i in range(known)]
    assert held_columns(own, names, np.column_stack(hidden)) == ("",) * len(hidden)


@given(st.integers(0, 2**32), st.integers(40, 150))
def test_a_linear_map_is_found_whatever_its_weights(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    own = rng.random((rows, 6))
    weights = rng.uniform(0.2, 2.0, 6) * rng.choice([-1, 1], 6)
    assert held(own @ weights, own) == "a linear map of 6 own columns"


def test_too_few_people_that_differ_are_no_evidence() -> None:
    """Two of 300 with the same rare value in two columns: any two columns may be so."""
    rare = (np.arange(300) < 2) * 1.0
    assert not held(rare, np.column_stack([rare, INCOME]))
    often = (np.arange(300) < 6) * 1.0
    assert held(often, np.column_stack([often, INCOME])) == "a copy of 'income'"


def test_as_many_own_columns_as_rows_explain_nothing() -> None:
    rng = np.random.default_rng(0)
    own = rng.random((60, 58))
    assert held_columns(own, [f"c{i}" for i in range(58)], rng.random((60, 3))) == ("",) * 3


def test_order_of_rows_and_columns_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    own, hidden = own_table(), np.column_stack([unit(np.log(0.05 + WEALTH)), np.logical_xor(SMOKER, REGION > 0.5)])
    rows, columns = rng.permutation(300), rng.permutation(6)
    plain = held_columns(own, NAMES, hidden)
    names = [NAMES[i] for i in columns]
    mixed = held_columns(own[rows][:, columns], names, hidden[rows][:, ::-1])
    assert set(plain[1].split("'")) == set(mixed[0].split("'"))
    assert plain[0] == mixed[1] == "a monotone function of 'wealth'"


def test_filled_cells_are_not_looked_at() -> None:
    """A copy in which some cells were missing, and are the median now, is a copy of the others."""
    filled = np.zeros((300, 2), dtype=np.bool_)
    filled[::7, 0] = True
    hidden = np.column_stack([INCOME, WEALTH[::-1]])
    hidden[filled] = 0.5
    assert held_columns(own_table(), NAMES, hidden) == ("", "")
    assert held_columns(own_table(), NAMES, hidden, filled=filled) == ("a copy of 'income'", "")


def federation_with(hidden: np.ndarray, label: np.ndarray) -> Federation:
    own = own_table()
    third = np.random.default_rng(9).random((300, 1))
    parties = (
        Party("bank", tuple(Column(name) for name in NAMES[:3]), own[:, :3]),
        Party("shop", tuple(Column(f"s{j}") for j in range(hidden.shape[1])), hidden),
        Party("post", (Column("letters"),), third),
    )
    return Federation(parties, "bank", label, ("no", "yes"))


def judged(federation: Federation, threat: Threat) -> tuple[Transcript, dict[str, str], str]:
    log = opened("logistic_regression", federation, federation.rows(np.arange(5)))
    view = cut(log, threat)
    truth = truth_of(log, view)
    guess = Guess(truth.names, np.full(truth.values.shape, 0.5))
    result = score(guess, truth, view, np.random.default_rng(0))
    return log, {column.name: column.held for column in result.columns}, result.label_held


def test_scores_say_what_is_held_and_own_columns_go_by_their_names() -> None:
    hidden = np.column_stack([INCOME, np.random.default_rng(1).random(300)])
    _, found, label = judged(federation_with(hidden, (WEALTH > 0.1).astype(np.int64)), THREATS["active"])
    assert found == {"shop.s0": "a copy of 'income'", "shop.s1": "", "post.letters": ""}
    assert label == ""  # which the active party has anyway


def test_held_columns_put_nobody_at_risk() -> None:
    """Three columns are recovered whole; two of them are the curious party's own."""
    hidden = np.column_stack([INCOME, np.random.default_rng(1).random(300), 1 - SMOKER])
    federation = federation_with(hidden, (WEALTH > 0.1).astype(np.int64))
    log = opened("logistic_regression", federation, federation.rows(np.arange(5)))
    view = cut(log, THREATS["active"])
    truth = truth_of(log, view)
    wrong = truth.values.copy()
    wrong[:, [1, 3]] += 2.0  # the column that is hidden indeed, and the last party's
    whole, half = (score(Guess(truth.names, v), truth, view, np.random.default_rng(0)) for v in (truth.values, wrong))
    assert [bool(column.held) for column in whole.columns] == [True, False, True, False]
    assert whole.rows_at_risk["columns"] == 2
    assert whole.rows_at_risk["all_1_hit"] == 300
    assert not any(n for name, n in half.rows_at_risk.items() if name.endswith("hit"))
    assert half.columns[0].exact == 1  # which is what the attack did


def test_colluding_parties_hold_what_any_of_them_holds() -> None:
    """Here the last party's column is the sum of the bank's and the shop's."""
    base = federation_with(REGION[:, None], (WEALTH > 0.1).astype(np.int64))
    post = replace(base.parties[2], values=unit(INCOME + REGION)[:, None])
    federation = replace(base, parties=(*base.parties[:2], post))
    assert judged(federation, THREATS["active"])[1]["post.letters"] == ""
    assert judged(federation, THREATS["collusion"])[1]["post.letters"] == (
        "a linear map of 'bank.income' and 'shop.s0'"
    )


def test_a_label_that_a_passive_party_holds_is_named() -> None:
    label = (WEALTH > np.median(WEALTH)).astype(np.int64)
    hidden = np.column_stack([label * 1.0, SEGMENT])
    _, found, words = judged(federation_with(hidden, label), THREATS["passive-training"])
    assert words == "a copy of 's0'"
    assert not any(found.values())
    _, _, words = judged(federation_with(hidden[::-1], label), THREATS["passive-training"])
    assert words == ""
