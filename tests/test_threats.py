"""A view holds what the threat grants and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from plumbob.errors import BadInput
from plumbob.federation import split, split_at_random
from plumbob.protocols import predict
from plumbob.threats import THREATS, AuxiliaryRows, Threat, WhiteBox, cut
from tests.worlds import made_table, small, transcript, world

pytestmark = pytest.mark.nodata


def four_parties():
    table = made_table(columns=8)
    owners = dict(zip("abcd", np.split(np.array(table.names), 4), strict=True))
    return transcript(small("logistic_regression"), split(table, {k: list(v) for k, v in owners.items()}, "a"))


def test_only_messages_of_the_curious_are_in_the_view() -> None:
    log = four_parties()
    for colluding in ((), ("b",), ("b", "d")):
        view = cut(log, Threat("t", "", (), colluding))
        curious = {"a", *colluding}
        assert view.messages
        assert all({m.sender, m.receiver} & curious for m in view.messages)
        assert view.own.shape[1] == 2 * len(curious)


def test_the_active_party_alone_never_sees_another_partys_answer() -> None:
    view = cut(four_parties(), THREATS["active"])
    answers = [m for m in view.messages if m.name == "answer"]
    assert [m.sender for m in answers] == ["a"]


def test_own_columns_are_the_curious_parties_in_model_order() -> None:
    log = four_parties()
    view = cut(log, Threat("t", "", (), ("c",)))
    assert view.known.tolist() == [0, 1, 4, 5]
    assert np.array_equal(view.own, np.hstack([log.sealed("a")["columns"], log.sealed("c")["columns"]]))


def test_black_box_has_no_model_and_no_schema_has_no_names() -> None:
    log = world()
    assert cut(log, THREATS["active-black-box"]).model is None
    bare = cut(log, THREATS["active-model-only"])
    assert bare.ranges is None
    assert not set(bare.unknown_names) & {feature.name for feature in log.features}


def test_auxiliary_rows_are_other_rows() -> None:
    log = world()
    view = cut(log, Threat("t", "", (WhiteBox(), AuxiliaryRows(7))))
    assert view.auxiliary is not None
    assert view.auxiliary.shape == (7, 8)
    predicted = np.hstack([log.sealed(party)["columns"] for party in log.parties])
    assert not (view.auxiliary[:, None] == predicted[None]).all(axis=2).any()


def test_more_auxiliary_rows_than_exist_are_refused() -> None:
    with pytest.raises(BadInput, match="only 200 are available"):
        cut(world(), Threat("t", "", (AuxiliaryRows(10_000),)))


def test_all_parties_colluding_is_refused() -> None:
    with pytest.raises(BadInput, match="no column is left"):
        cut(world(), Threat("t", "", (), ("passive",)))


def test_collusion_leaves_the_last_party() -> None:
    view = cut(four_parties(), THREATS["collusion"])
    assert view.curious == ("a", "b", "c")
    assert len(view.unknown) == 2


def test_a_view_holds_no_hash_of_what_its_owner_never_saw() -> None:
    assert all(message.link == "" for message in cut(four_parties(), THREATS["active"]).messages)


def test_no_party_has_the_name_of_the_helper() -> None:
    table = made_table(columns=4)
    owners = {"coordinator": list(table.names[:2]), "b": list(table.names[2:])}
    with pytest.raises(BadInput, match="cannot be called 'coordinator'"):
        split(table, owners, "b")


def test_rows_of_the_prediction_set_are_a_grant_of_their_own() -> None:
    """They are other rows than the attacked ones and than those of training, with the scores and the repr of their own."""
    federation = split_at_random(made_table(), 3, np.random.default_rng(0))
    protocol = small("logistic_regression")
    target, trainer, known = (federation.rows(np.arange(*ends)) for ends in ((0, 100), (100, 300), (300, 400)))
    model = protocol.fit(trainer.values, trainer.label, 3, np.random.default_rng(0))
    log = predict(protocol, model, target, trainer, acquainted=known)
    view = cut(log, Threat("t", "", (AuxiliaryRows(7, predicted=True),)))
    assert view.auxiliary == pytest.approx(known.values[:7])
    assert view.auxiliary_scores == pytest.approx(model.scores(known.values[:7]))
    assert cut(log, Threat("t", "", (AuxiliaryRows(7),))).auxiliary == pytest.approx(trainer.values[:7])
    with pytest.raises(BadInput, match="only 100 are available"):
        cut(log, Threat("t", "", (AuxiliaryRows(101, predicted=True),)))
    assert repr(AuxiliaryRows(100)) == "AuxiliaryRows(count=100)"  # seeds hash it
    assert repr(AuxiliaryRows(100, predicted=True)) == "AuxiliaryRows(count=100, predicted=True)"
    both = [Threat("t", "", (AuxiliaryRows(7, predicted),)) for predicted in (False, True)]
    assert not both[0].within(both[1])
    assert not both[1].within(both[0])
