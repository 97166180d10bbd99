"""Attacks that learn embeddings from complete rows: what they find, what they need, and what they say of bad input."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from plumbob.attacks import attack_named
from plumbob.attacks.auxiliary._told_embeddings import CONSTANT, SILENT, half_whitened
from plumbob.attacks.auxiliary.complete_rows import CompleteRows, learnt_alone
from plumbob.attacks.auxiliary.inversion_network import InversionNetwork
from plumbob.attacks.auxiliary.matched_moments import MatchedMoments
from plumbob.attacks.auxiliary.sdar import NO_LABEL, OTHER_TOP, Sdar
from plumbob.attacks.base import Attack
from plumbob.errors import BadInput
from plumbob.federation import Column, FloatArray, Table, split
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.scoring.truth import truth_of
from plumbob.threats import THREATS, AuxiliaryRows, KnownPeople, Schema, Threat, View, cut
from plumbob.transcript import Transcript

OTHERS = Threat("others", "", (Schema(), AuxiliaryRows(600)))
ASKED = Threat("asked", "", (Schema(), AuxiliaryRows(100, predicted=True)))
INSIDER = Threat("insider", "", (Schema(), KnownPeople(100)))


def skewed() -> Table:
    """Hidden columns that hang on products of own columns, and on much else."""
    rng = np.random.default_rng(0)
    raw = rng.exponential(size=(1_600, 6))
    hidden = raw[:, :3] * raw[:, [1, 2, 0]] + 2 * rng.gamma(2.0, size=(1_600, 3))
    values = np.hstack([raw[:, :3], hidden])
    values = (values - values.min(axis=0)) / np.ptp(values, axis=0)
    label = (values.sum(axis=1) > np.median(values.sum(axis=1))).astype(np.int64)
    return Table("skewed", tuple(Column(f"c{i}") for i in range(6)), values, label, ("no", "yes"))


@cache
def cut_network(layers: int = 1, aggregation: str = "none") -> Transcript:
    table = skewed()
    parties = {"bank": [0, 1, 2], "shop": [3, 4, 5]}
    if aggregation == "masked":
        parties = {"bank": [0, 1, 2], "shop": [3], "post": [4, 5]}
    federation = split(table, {name: [f"c{i}" for i in columns] for name, columns in parties.items()}, "bank")
    protocol = SplitNetwork(hidden=(12, 6), cut=layers, epochs=3, aggregation=aggregation)  # type: ignore[arg-type]  # one of its words
    return protocol.train(
        federation.rows(np.arange(800)), federation.rows(np.arange(800, 1_600)), np.random.default_rng(0)
    )


def r2(guess: FloatArray | None, log: Transcript, view: View) -> FloatArray:
    assert guess is not None
    true = truth_of(log, view).values
    kept = np.setdiff1d(np.arange(len(true)), [] if view.people is None else view.people)
    return np.asarray(1 - ((guess - true)[kept] ** 2).mean(axis=0) / true[kept].var(axis=0))


def found(attack: Attack, log: Transcript, threat: Threat) -> tuple[FloatArray, FloatArray]:
    """What an attack explains of each hidden column, and what own columns explain."""
    view = cut(log, threat)
    guess = attack.run(view, np.random.default_rng(0))
    return r2(guess.values, log, view), r2(learnt_alone(view), log, view)


def test_moments_that_both_sides_share_undo_a_linear_cut_without_one_embedding_of_those_known() -> None:
    told, alone = found(MatchedMoments(), cut_network(), OTHERS)
    assert (told > 0.7).all()
    assert (alone < 0.6).all()


@pytest.mark.parametrize("threat", [ASKED, INSIDER], ids=["others", "people"])
def test_an_inversion_network_undoes_a_deeper_cut(threat: Threat) -> None:
    told, alone = found(InversionNetwork(steps=100, width=32), cut_network(2), threat)
    assert told.mean() > 0.75
    assert (told > 0.5).all()
    assert (alone < 0.6).all()


@pytest.mark.parametrize("aggregation", ["none", "masked"])
def test_the_floor_has_the_embeddings_of_others_who_were_predicted(aggregation: str) -> None:
    told, _ = found(CompleteRows(), cut_network(1, aggregation), ASKED)
    assert (told > 0.999).all()


def test_embeddings_of_others_are_granted_only_where_they_were_predicted() -> None:
    log = cut_network()
    assert not [name for name in cut(log, OTHERS).notes if name.startswith("auxiliary answers")]
    answers = cut(log, ASKED).notes["auxiliary answers/shop"]
    weight = log.sealed("shop")["bottom/weight"]
    view = cut(log, ASKED)
    assert view.auxiliary is not None
    assert np.allclose(answers, view.auxiliary[:, view.unknown] @ weight.T, atol=1e-5)


def test_sdar_descends_on_its_own_rows() -> None:
    """As published it needs thousands of steps; here its decoder has learnt to decode what its simulator makes."""
    told, _ = found(Sdar(iterations=150, batch=64), cut_network(), OTHERS)
    early, _ = found(Sdar(iterations=1, batch=64), cut_network(), OTHERS)
    assert told.mean() > early.mean()


EVERY = [
    pytest.param("matched_moments", OTHERS, id="matched_moments"),
    pytest.param("inversion_network", INSIDER, id="inversion_network"),
    pytest.param("sdar", OTHERS, id="sdar"),
]


def small(name: str) -> Attack:
    return type(attack_named(name)).preset("small")


@pytest.mark.parametrize(("name", "threat"), EVERY)
@pytest.mark.parametrize("case", ["constant", "nan", "none"])
def test_embeddings_that_say_nothing_are_one_sentence(name: str, threat: Threat, case: str) -> None:
    view = cut(cut_network(), threat)
    fill = {"constant": 0.25, "nan": np.nan, "none": 0.0}[case]
    messages = [
        replace(m, payload=np.full_like(m.payload, fill)) if m.name == "embeddings" else m
        for m in view.messages
        if case != "none" or m.name != "embeddings"
    ]
    guess = small(name).run(replace(view, messages=tuple(messages)), np.random.default_rng(0))
    assert guess.untried == (CONSTANT if case == "constant" else SILENT)


@pytest.mark.parametrize("name", ["matched_moments", "sdar"])
def test_rows_of_other_people_must_be_two_and_numbers(name: str) -> None:
    view = cut(cut_network(), OTHERS)
    assert view.auxiliary is not None
    with pytest.raises(BadInput, match="expected at least 2 complete rows of other people"):
        small(name).run(replace(view, auxiliary=view.auxiliary[:1]), np.random.default_rng(0))
    with pytest.raises(BadInput, match="expected numbers in the complete rows of other people, got NaN or infinity"):
        small(name).run(replace(view, auxiliary=view.auxiliary * np.nan), np.random.default_rng(0))


def test_sdar_needs_labels_and_a_top_model_of_layers() -> None:
    view = cut(cut_network(), OTHERS)
    notes = {name: note for name, note in view.notes.items() if name != "label"}
    assert small("sdar").run(replace(view, notes=notes), np.random.default_rng(0)).untried == NO_LABEL
    other = view.notes | {"top/0.weight": np.zeros((3, 3, 3))}
    assert small("sdar").run(replace(view, notes=other), np.random.default_rng(0)).untried == OTHER_TOP


def test_a_network_needs_people_whose_embeddings_it_gets() -> None:
    attack = InversionNetwork()
    needs = "needs complete rows of people whose embeddings it gets"
    assert attack.why_not("split_network", THREATS["active-auxiliary"]) == needs
    assert attack.why_not("split_network", ASKED) is None
    assert attack.why_not("split_network", THREATS["active-known-people"]) is None


def test_directions_are_half_whitened() -> None:
    table = np.random.default_rng(0).normal(size=(500, 3)) * [1.0, 0.01, 0.0]
    made, same = half_whitened(table, table)
    assert np.allclose(made, same)
    assert np.allclose(made.std(axis=0), [1.0, np.sqrt(table[:, 1].std() / table[:, 0].std())], rtol=0.05)
