"""Columns of two values in a span: found exactly, all of them, none that is not there; certificates; hard cases; bad input."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import qr

from plumbob.attacks.embeddings._embedding_span import EmbeddingSpan
from plumbob.attacks.embeddings._lifted_null_space import diagonal, lift, rounded
from plumbob.attacks.embeddings._meet_in_the_middle import search
from plumbob.attacks.embeddings._received_embeddings import Embedding
from plumbob.attacks.embeddings._smallest_columns import atoms, irreducible
from plumbob.attacks.embeddings._two_valued_ascent import cuts
from plumbob.attacks.embeddings.binary_columns import BinaryColumns, exact
from plumbob.attacks.embeddings.leverage_sampling import LeverageSampling, nearest
from plumbob.attacks.embeddings.linear_equations import LinearEquations, candidates, independent_columns, solve
from plumbob.errors import BadInput
from plumbob.federation import FloatArray
from plumbob.papers.ye2022.attacks import cover_matrix, covers
from plumbob.scoring.score import named, sum_of
from plumbob.threats import THREATS, View, cut
from tests.worlds import world


def embedded(x: FloatArray, seed: int, kind: type = np.float32, bias: bool = False, width: int = 0) -> FloatArray:
    """What a random first layer makes of the columns."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((x.shape[1], width or 2 * x.shape[1]))
    return (x @ w + (rng.standard_normal(w.shape[1]) if bias else 0.0)).astype(kind)


def planted(rows: int, columns: int, binary: int, seed: int) -> FloatArray:
    """Numbers, with columns of 0 and 1 in front, none of them rare."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, columns))
    x[:, :binary] = rng.random((rows, binary)) < rng.uniform(0.2, 0.8, binary)
    return x


def kinds(vectors: FloatArray) -> set[bytes]:
    """Columns as bytes, each turned so that its first cell is 0: complements are one."""
    return {np.abs(v - v[0]).astype(np.int8).tobytes() for v in vectors.T}


# --- exact


@settings(max_examples=10)
@given(
    columns=st.integers(2, 40),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**16),
    single=st.booleans(),
    bias=st.booleans(),
)
def test_planted_columns_are_found_and_no_others(
    columns: int, share: float, seed: int, single: bool, bias: bool
) -> None:
    binary = round(share * min(columns, 12))
    x = planted(1_200, columns, binary, seed)  # up to 12 binary ones among 40
    span = EmbeddingSpan.of(embedded(x, seed + 1, np.float32 if single else np.float64, bias))
    found, complete = exact(span, np.random.default_rng(0))
    assert complete
    assert kinds(found) == kinds(x[:, :binary])
    assert (span.distance(found) <= span.explained(found)).all()  # the certificate


@pytest.mark.parametrize("columns", [20, 50, 60])
def test_one_null_space_gives_all_of_them_far_beyond_enumeration(columns: int) -> None:
    x = planted(3_000, columns, columns // 2, 0)
    span = EmbeddingSpan.of(embedded(x, 1, np.float64))
    lifted = lift(span, np.random.default_rng(0))
    assert lifted.dimension == columns // 2  # one dimension for each
    assert kinds(rounded(span, diagonal(lifted, np.random.default_rng(1)))) == kinds(x[:, : columns // 2])
    found, complete = exact(span, np.random.default_rng(0))
    assert complete
    assert kinds(found) == kinds(x[:, : columns // 2])


def test_no_false_column_in_a_hundred_tables_without_any() -> None:
    for seed in range(100):
        rng = np.random.default_rng(seed)
        shape = (int(rng.integers(50, 2_000)), int(rng.integers(2, 25)))
        x = [rng.random(shape), rng.standard_normal(shape), rng.integers(0, int(rng.integers(4, 30)), shape) / 10][
            seed % 3
        ]
        found, complete = exact(EmbeddingSpan.of(embedded(x, seed)), rng)
        assert (found.shape[1], complete) == (0, True), seed


def brute(x: FloatArray) -> set[bytes]:
    """Every column of 0 and 1 in the affine span of these columns, by trying all; complements are one."""
    full = np.column_stack([x, np.ones(len(x))])
    left, sizes, _ = np.linalg.svd(full, full_matrices=False)
    basis = left[:, sizes > 1e-9 * sizes[0]]
    chosen = qr(basis.T, mode="r", pivoting=True)[1][: basis.shape[1]]
    inverse = np.linalg.inv(basis[chosen])
    values = np.hstack([basis @ (inverse @ some) for some in candidates(basis.shape[1], 256)])
    binary = (np.minimum(np.abs(values), np.abs(values - 1)) < 1e-7).all(axis=0)
    return kinds(np.round(values[:, binary])) - {bytes(len(x))}


@settings(max_examples=60, deadline=None)
@given(
    case=st.sampled_from(
        ["numbers", "whole numbers", "copies of rows", "near-collinear", "rare", "barely enough rows"]
    ),
    weights=st.sampled_from(["even", "uneven", "large bias"]),
    seed=st.integers(0, 2**20),
)
def test_whatever_is_claimed_is_there_and_complete_means_complete(case: str, weights: str, seed: int) -> None:
    """Against trying everything, on tables that make it hard; columns below the rounding of 32 bits are left to doubt."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 8))
    n = d + int(rng.integers(1, 4)) if case == "barely enough rows" else int(rng.integers(3 * d, 90))
    x = planted(n, d, int(rng.integers(0, d + 1)), seed)
    if case == "whole numbers":
        x = rng.integers(0, int(rng.integers(2, 5)), (n, d)).astype(float)
    if case == "copies of rows":
        x = np.repeat(x[: max(2, n // 3)], 3, axis=0)
    if case == "near-collinear":
        x[:, -1] = x[:, 0] + rng.choice([1e-2, 1e-3]) * rng.standard_normal(n)
    if case == "rare":
        x[:, 0] = np.arange(n) < 2
    w = rng.standard_normal((d, d + int(rng.integers(3, 9))))
    if weights == "uneven":
        left, _, right = np.linalg.svd(w, full_matrices=False)
        w = left @ np.diag(np.logspace(0, -2, d)) @ right
    z = (x @ w + (100 * rng.standard_normal(w.shape[1]) if weights == "large bias" else 0.0)).astype(np.float32)
    span = EmbeddingSpan.of(z)
    found, complete = exact(span, np.random.default_rng(0))
    true = brute(x)
    assert kinds(found) <= true
    if complete:
        assert kinds(found) == true


def test_the_published_and_our_search_find_the_same() -> None:
    for seed in range(10):
        x = planted(300, 9, 3, seed)
        z = embedded(x, seed)
        ours, _ = exact(EmbeddingSpan.of(z, affine=False), np.random.default_rng(0))
        assert kinds(ours) == kinds(solve(independent_columns(z, 9))) == kinds(x[:, :3])


def test_codes_of_a_category_are_found_with_all_their_sums() -> None:
    rng = np.random.default_rng(0)
    code = rng.integers(0, 5, 2_000)
    codes = (code[:, None] == np.arange(4)).astype(float)
    found, complete = exact(EmbeddingSpan.of(embedded(np.hstack([codes, rng.random((2_000, 5))]), 1)), rng)
    sums = [codes[:, list(some)].sum(axis=1) for size in range(1, 5) for some in combinations(range(4), size)]
    assert complete
    assert kinds(found) == kinds(np.array(sums).T)
    assert len(kinds(found)) == 15


def test_many_codes_come_as_the_smallest_columns() -> None:
    """Two categories of 24 and 30 codes have too many sums to list."""
    rng = np.random.default_rng(0)
    one, two = rng.integers(0, 24, 9_000), rng.integers(0, 30, 9_000)
    codes = np.hstack([one[:, None] == np.arange(24), two[:, None] == np.arange(30)]).astype(float)
    found, complete = exact(EmbeddingSpan.of(embedded(np.hstack([codes, rng.random((9_000, 3))]), 1)), rng)
    assert not complete
    assert len(kinds(found) & kinds(codes)) >= 50  # those of the reference row are complements of sums


@pytest.mark.parametrize("pair", [(0.0, 1.0), (1.0, 2.0), (-0.6, 0.7), (5.0, 4.99)])
def test_any_two_values_and_a_bias_will_do(pair: tuple[float, float]) -> None:
    x = planted(800, 8, 2, 3)
    true = kinds(x[:, :2])
    x[:, :2] = pair[0] + (pair[1] - pair[0]) * x[:, :2]
    found, complete = exact(EmbeddingSpan.of(embedded(x, 4, np.float64, bias=True)), np.random.default_rng(0))
    assert complete
    assert kinds(found) == true


def test_columns_of_known_values_are_found() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((900, 7))
    x[:, 0] = rng.integers(0, 3, 900) / 2
    done = search(EmbeddingSpan.of(embedded(x, 1), affine=False), (0.0, 0.5, 1.0))
    assert done.complete
    assert [bool((column == x[:, 0]).all()) for column in done.columns.T] == [True]


def test_correlated_columns_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    x = planted(3_000, 10, 3, 0)
    flipped = rng.random(3_000) < 0.01
    x[:, 1] = np.where(flipped, 1 - x[:, 0], x[:, 0])
    found, complete = exact(EmbeddingSpan.of(embedded(x, 1)), rng)
    assert complete
    assert kinds(x[:, :3]) <= kinds(found)


def test_too_few_rows_for_the_null_space_are_climbed_and_certified() -> None:
    x = planted(1_000, 50, 6, 0)
    span = EmbeddingSpan.of(embedded(x, 1, np.float64))
    assert not lift(span, np.random.default_rng(0)).determined
    found, complete = exact(span, np.random.default_rng(0))
    assert not complete
    assert kinds(found) <= kinds(x[:, :6])
    assert len(kinds(found)) >= 2


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**20))
def test_exact_cover_is_answered_by_it(seed: int) -> None:
    """Theorem 2: a binary column in the span of this matrix is an exact cover."""
    rng = np.random.default_rng(seed)
    elements = int(rng.integers(2, 7))
    sets = list({frozenset(rng.permutation(elements)[: rng.integers(1, 4)].tolist()): 0 for _ in range(6)})
    found, complete = exact(EmbeddingSpan.of(cover_matrix(elements, sets), affine=False), rng)
    assert complete
    assert bool(found.shape[1]) == covers(elements, sets)


def test_columns_that_are_sums_of_others_are_left_out() -> None:
    one, two, three = np.eye(3).repeat(4, axis=0).T
    assert kinds(irreducible(np.array([one, two, three, one + two]).T)) == kinds(np.array([one, two, three]).T)
    assert atoms(EmbeddingSpan.of(np.ones((5, 2))), np.random.default_rng(0)).shape == (5, 0)


# --- with noise


@pytest.mark.parametrize("sigma", [0.1, 0.3, 0.5])
def test_with_noise_ours_is_at_least_as_good_as_the_published_one(sigma: float) -> None:
    ours, theirs = [], []
    for seed in range(4):
        x = planted(2_000, 7, 1, seed)
        rng = np.random.default_rng(seed)
        z = x @ rng.uniform(-0.4, 0.4, (7, 40)) + sigma * rng.standard_normal((2_000, 40))
        best = cuts(EmbeddingSpan.of(z, sd=sigma, affine=False), rng).columns[:, 0]
        near, _ = nearest(independent_columns(z, 7), 10, rng)
        ours.append(max(np.mean(best == x[:, 0]), np.mean(best != x[:, 0])))
        theirs.append(max(np.mean(near == x[:, 0]), np.mean(near != x[:, 0])))
    assert np.mean(ours) >= np.mean(theirs)
    assert np.mean(ours) > {0.1: 0.99, 0.3: 0.9, 0.5: 0.75}[sigma]


def test_with_noise_ours_goes_where_enumeration_does_not() -> None:
    x = planted(4_000, 40, 1, 0)
    rng = np.random.default_rng(1)
    z = x @ rng.uniform(-0.4, 0.4, (40, 200)) + 0.1 * rng.standard_normal((4_000, 200))
    best = cuts(EmbeddingSpan.of(z, sd=0.1, affine=False), rng)
    assert max(np.mean(best.columns[:, 0] == x[:, 0]), np.mean(best.columns[:, 0] != x[:, 0])) > 0.99
    assert best.fits[0] < 1.25


def test_as_printed_algorithm_2_returns_one_row_when_there_is_noise() -> None:
    x = planted(1_000, 5, 1, 0)
    rng = np.random.default_rng(0)
    z = x @ rng.standard_normal((5, 12)) + 0.3 * rng.standard_normal((1_000, 12))
    column, distance = nearest(independent_columns(z, 5), 3, rng, relative=False)
    assert column.sum() == 1
    assert distance < 1


# --- through the view


def seen(name: str = "split_network") -> View:
    return cut(world(name), THREATS["active-training"])


def with_embeddings(view: View, cells: FloatArray) -> View:
    return replace(
        view, messages=tuple(replace(m, payload=cells) if m.name == "embeddings" else m for m in view.messages)
    )


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (np.full((100, 3), np.nan), "expected a number in every cell, got NaN or infinity"),
        (np.zeros((1, 3)), "expected a table of at least 2 rows"),
        (np.zeros(5), "expected a table of at least 2 rows"),
    ],
)
def test_embeddings_that_cannot_be_are_refused_in_a_sentence(cells: FloatArray, words: str) -> None:
    for attack in (BinaryColumns(), LinearEquations(), LeverageSampling(runs=1)):
        with pytest.raises(BadInput, match=words):
            attack.run(with_embeddings(seen(), cells), np.random.default_rng(0))


def test_a_view_without_outputs_is_refused() -> None:
    view = seen()
    view = replace(view, messages=tuple(m for m in view.messages if m.name not in ("embeddings", "outputs")))
    for attack in (BinaryColumns(), LinearEquations(), LeverageSampling(runs=1)):
        with pytest.raises(BadInput, match="this view holds no message 'embeddings', and no batch of 'outputs'"):
            attack.run(view, np.random.default_rng(0))


@pytest.mark.parametrize("case", ["constant", "rank-deficient", "fewer rows than columns"])
def test_awkward_embeddings_get_a_clear_answer(case: str) -> None:
    rng = np.random.default_rng(0)
    x = planted(200, 6, 1, 0)
    cells = {
        "constant": np.ones((200, 5)),
        "rank-deficient": embedded(np.column_stack([x, x[:, 0] + x[:, 1]]), 1),
        "fewer rows than columns": embedded(x[:4], 1, width=30),
    }[case]
    found = BinaryColumns().found(Embedding("b", cells, 0.0), 0, rng)
    if case == "constant":
        assert (found.columns.shape[1], found.rank) == (0, 0)
        assert found.words == "0 in 0 dimensions, sums of columns included; no others lie in it"
    elif case == "rank-deficient":
        assert found.rank == 6
        assert kinds(found.columns) == kinds(x[:, :1])
    else:  # every column of 0 and 1 lies in a span as large as the table, so none means anything
        assert found.words == "0 in 3 dimensions, sums of columns included; others may lie in it"


def test_values_must_differ() -> None:
    with pytest.raises(BadInput, match="expected at least two different numbers"):
        BinaryColumns(values=(1.0, 1.0))


# --- scored


def test_a_vector_counts_for_the_column_it_is_nearest_to_whatever_its_name() -> None:
    x = planted(400, 4, 2, 0)
    prior = np.tile(x.mean(axis=0), (400, 1))
    values = named(np.column_stack([1 - x[:, 1], x[:, 0]]), x, prior)
    assert (values[:, :2] == x[:, :2]).all()
    assert (values[:, 2:] == prior[:, 2:]).all()  # vectors are no better there than the mean


def test_a_vector_of_chance_counts_for_nothing() -> None:
    x = planted(400, 4, 2, 0)
    prior = np.tile(x.mean(axis=0), (400, 1))
    chance = (np.random.default_rng(1).random((400, 50)) < 0.5).astype(float)
    assert (named(chance, x, prior) == prior).all()


def test_sums_that_do_not_overlap_count() -> None:
    one, two, three = np.eye(3).repeat(4, axis=0).T
    assert sum_of(np.array([one, two]).T, one + two) is not None
    assert sum_of(np.array([one, two]).T, one + three) is None
    assert sum_of(np.array([one, two]).T, np.zeros(12)) is None
