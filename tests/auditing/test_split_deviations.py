"""Parties of a split network that deviate: what changes, what they are given, and what is said where nothing can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from plumbob.attacks.embeddings.fsha import HONEST, Fsha, Hijack
from plumbob.attacks.labels.active_completion import CONSTANT, FEW, ActiveCompletion, ScaledSteps, complete
from plumbob.attacks.labels.active_completion import HONEST as HONEST_STEPS
from plumbob.auditing.planning.plan_file import make_plan
from plumbob.auditing.running.expand import Unit, cases
from plumbob.bundle import Array
from plumbob.errors import BadInput
from plumbob.federation import IntArray, split
from plumbob.protocols import protocol_named
from plumbob.protocols.embeddings.split_network import SplitNetwork
from plumbob.protocols.shared.conduct import ChosenGradients, Conduct, GradientChoice, Standing
from plumbob.protocols.shared.hidden_codes import MagicNumbers
from plumbob.recorded.seals import sent_in
from plumbob.threats import THREATS, cut
from plumbob.transcript import Transcript
from tests.worlds import made_table

HIJACKING = THREATS["active-any-gradient-auxiliary"]
OWN_STEPS = THREATS["passive-own-steps"]


def trained(conduct: Conduct | None = None, passive: int = 1, **settings: object) -> Transcript:
    table = made_table(rows=240, columns=6)
    names = [f"c{i}" for i in range(6)]
    owners = {"bank": names[:2], **{f"shop {i}": names[2 + 4 // passive * i :][: 4 // passive] for i in range(passive)}}
    federation = split(table, owners, "bank")
    protocol = SplitNetwork(hidden=(8, 4), **{"epochs": 3, "batch_size": 40, **settings})  # type: ignore[arg-type]  # settings of it
    protocol = protocol if conduct is None else protocol.deviating(conduct)
    rows = np.arange(120)
    return protocol.train(federation.rows(rows), federation.rows(rows + 120), np.random.default_rng(0))


class Echo(ChosenGradients):
    """Sends ones, and keeps what it was given."""

    name = "echo"
    kind = "ones"
    auxiliary = 7

    def begin(self, standing: Standing, rng: np.random.Generator) -> GradientChoice:
        self.standing = standing
        return _Echoing(self)


class _Echoing(GradientChoice):
    def __init__(self, echo: Echo) -> None:
        echo.asked = self.asked = []  # type: ignore[attr-defined]  # for the test alone

    def gradients(self, party: str, rows: IntArray, told: Array, honest: Array) -> Array:
        self.asked.append((party, rows, told))
        return np.ones_like(honest)

    def notes(self) -> dict[str, Array]:
        return {"rounds": np.array(len(self.asked))}


def sent(log: Transcript, name: str) -> Sequence[Array]:
    return [m.payload for m in log.messages if m.name == name]


@pytest.mark.parametrize(("passive", "aggregation"), [(2, "none"), (2, "masked")])
def test_passive_parties_get_what_was_chosen_and_learn_from_it(passive: int, aggregation: str) -> None:
    echo = Echo()
    log = trained(echo, passive, aggregation=aggregation, optimizer="sgd", weight_decay=0.0)
    assert all((gradient == 1).all() for gradient in sent(log, "output gradients"))
    parties = {party for party, *_ in echo.asked}  # type: ignore[attr-defined]  # for the test alone
    assert parties == ({""} if aggregation == "masked" else set(log.parties[1:]))
    assert log.sealed("bank")["notes/sent/rounds"] == len(echo.asked)  # type: ignore[attr-defined]  # likewise
    moved = log.sealed("shop 0")["bottom/weight"]
    start = trained(Echo(), passive, aggregation=aggregation, optimizer="sgd", weight_decay=0.0, learning_rate=1e-9)
    step = moved - start.sealed("shop 0")["bottom/weight"]
    assert np.allclose(step, step[:1], atol=1e-5)  # the same for every output, as ones are
    assert (step < 0).all()


def test_a_conduct_has_what_its_party_has_and_rows_as_granted() -> None:
    echo = Echo()
    log = trained(echo, 2)
    standing = echo.standing
    assert np.array_equal(standing.own, log.sealed("bank")["columns"])
    assert np.array_equal(standing.label, log.sealed("bank")["label"])
    assert standing.others is not None
    assert standing.others.shape == (7, 6)
    assert {name: places.tolist() for name, places in standing.hidden.items()} == {"shop 0": [2, 3], "shop 1": [4, 5]}


def test_an_honest_run_is_the_same_whether_or_not_somebody_could_deviate() -> None:
    honest, echo = trained(), trained(Echo(), learning_rate=1e-12)
    assert all(np.array_equal(*pair) for pair in zip(sent(honest, "rows"), sent(echo, "rows"), strict=True))
    assert np.array_equal(sent(honest, "outputs")[0], sent(echo, "outputs")[0])  # the same first weights


def test_gradients_that_are_not_finite_are_one_sentence() -> None:
    class Broken(Echo):
        def begin(self, standing: Standing, rng: np.random.Generator) -> GradientChoice:
            choice = super().begin(standing, rng)
            choice.gradients = lambda party, rows, told, honest: honest * np.nan  # type: ignore[method-assign]  # that is the test
            return choice

    with pytest.raises(BadInput, match="split_network: ones: expected finite gradients of"):
        trained(Broken())


@pytest.mark.parametrize(
    ("protocol", "conduct"),
    [("split_network", MagicNumbers()), ("secure_boost", ScaledSteps()), ("split_training", Hijack())],
)
def test_a_protocol_that_does_not_take_a_deviation_says_so(protocol: str, conduct: Conduct) -> None:
    with pytest.raises(BadInput, match=f"'{protocol}': none of its parties can send {conduct.kind}"):
        protocol_named(protocol).deviating(conduct)


def test_more_rows_than_there_are_is_one_sentence() -> None:
    with pytest.raises(BadInput, match="grants 1,000 auxiliary rows, but only 120 are available"):
        trained(Hijack(auxiliary=1_000))
    with pytest.raises(BadInput, match="expected a threat that grants complete rows of other people, got none"):
        trained(Hijack())


def test_a_hijacked_bottom_is_decoded_and_an_honest_one_is_not() -> None:
    attack = Fsha.preset("small")
    log = trained(attack.sends().granted(HIJACKING), 2)
    guess = attack.run(cut(log, HIJACKING), np.random.default_rng(0))
    assert guess.values is not None
    assert guess.values.std(axis=0).min() > 0
    assert sent_in(log) == Hijack.kind
    assert attack.run(cut(trained(), HIJACKING), np.random.default_rng(0)).untried == HONEST


def test_a_critic_s_gradient_leads_outputs_to_the_pilot_s() -> None:
    """What is sent is downhill for the hijacked: outputs that follow it come to look like the pilot's to the critic."""
    from plumbob.attacks.embeddings.fsha import _Captor

    torch.manual_seed(0)
    captor = _Captor(
        Hijack(pilot_rate=1e-3, critic_rate=1e-3, penalty=10.0), np.random.default_rng(0).random((50, 3)), 4, 0
    )
    told = torch.full((40, 4), 2.0)
    for _ in range(200):
        told = told - 0.5 * captor.round(told.clone())
    aim = captor.pilot(captor.rows).detach()
    assert float((told.mean(0) - aim.mean(0)).norm()) < 0.7 * float((2.0 - aim.mean(0)).norm())


def test_own_steps_grow_where_gradients_go_on_and_not_where_they_turn() -> None:
    part = torch.nn.Parameter(torch.zeros(3))
    steps = ScaledSteps().begin()
    for grad, expected in (([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]), ([1.0, -1.0, 9.0], [2.0, -1.0, 45.0])):
        part.grad = torch.tensor(grad)
        steps.change([part])
        assert torch.allclose(part.grad, torch.tensor(expected), rtol=1e-4)


def test_a_party_with_steps_of_its_own_changes_its_part_alone() -> None:
    honest, scaled = (trained(one, 2, epochs=1, batch_size=60) for one in (None, ScaledSteps()))
    first, second = ([log.sealed(name)["bottom/weight"] for log in (honest, scaled)] for name in ("shop 0", "shop 1"))
    assert not np.array_equal(*first)
    assert np.allclose(*second, atol=1e-3)
    assert sent_in(scaled) == ScaledSteps.kind


def test_completion_reads_labels_off_own_outputs() -> None:
    """Outputs of three classes around three corners, and the labels of four people of each."""
    label = np.arange(150) % 3
    rng = np.random.default_rng(0)
    cells = 3 * np.eye(6)[label] + 0.5 * rng.normal(size=(150, 6))
    view = cut(trained(ScaledSteps()), OWN_STEPS)
    outputs = next(m for m in view.messages if m.name == "embeddings")
    rest = [m for m in view.messages if m.name != "embeddings"]
    view = replace(view, own=np.zeros((150, 2)), messages=(*rest, replace(outputs, payload=cells)))
    view = replace(view, labelled=np.arange(12), labelled_classes=label[:12])
    guess = ActiveCompletion(steps=200).run(view, np.random.default_rng(0))
    assert guess.labels is not None
    assert np.mean(guess.labels == label) > 0.95


def test_completion_says_what_it_lacks() -> None:
    attack = ActiveCompletion(steps=1)
    assert attack.run(cut(trained(), OWN_STEPS), np.random.default_rng(0)).untried == HONEST_STEPS
    view = cut(trained(ScaledSteps()), OWN_STEPS)
    assert view.labelled_classes is not None
    one = replace(view, labelled_classes=np.zeros_like(view.labelled_classes))
    assert attack.run(one, np.random.default_rng(0)).untried == FEW
    flat = tuple(replace(m, payload=np.ones_like(m.payload)) if m.name == "embeddings" else m for m in view.messages)
    assert complete(replace(view, messages=flat), 1, 4, np.random.default_rng(0)).untried == CONSTANT


def test_who_deviates_must_be_who_is_curious() -> None:
    with pytest.raises(BadInput, match="'deviates' is about a passive party, which by itself is not curious here"):
        make_plan({"protocols": "split_network", "threats": [{"name": "active", "deviates": ["own_steps"]}]})
    why = Fsha().why_not("split_network", THREATS["active-training"])
    assert why == "needs 100 complete rows of other people"
    assert ActiveCompletion().why_not("split_network", THREATS["passive-known-labels"]) == (
        "needs a passive party that trains its part of the model at rates of its own"
    )


def test_an_audit_trains_anew_for_every_number_of_rows_that_the_deviating_party_has() -> None:
    plan = make_plan(
        {
            "unknown": [0.3],
            "trials": 1,
            "rows": 100,
            "protocols": [{"name": "split_network", "settings": {"hidden": [6], "epochs": 1}}],
            "threats": [
                "active-any-gradient-auxiliary",
                {"name": "more", "auxiliary_rows": 120, "deviates": ["any_gradient"]},
            ],
            "attacks": [{"name": "fsha", "preset": "small"}],
        }
    ).filled()
    places = {case.sent for case in cases(plan, Unit(plan.protocols[0], 0)) if case.sent}
    assert len(places) == 2
