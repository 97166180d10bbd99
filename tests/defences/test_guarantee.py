"""What defences promise by differential privacy: the parameters that NIST SP 800-226 asks for, taken from their settings."""

import pytest

from plumbob.defences import DEFENCES, defence_named


def test_only_defences_with_differential_privacy_promise_it() -> None:
    promising = {name for name in DEFENCES if defence_named(name).guarantees()}
    columns = {"dp_sgd", "dp_gradients", "dp_scores", "randomised_response", "dp_histograms"}
    labels = {"label_randomised_response", "lp_mst", "private_residuals", "grafting_ldp"}
    assert promising == columns | labels
    for name in labels:  # of which one person's label is protected, and nothing else
        assert {one.unit for one in defence_named(name).guarantees()} == {
            "the label of one row: one person, if each has one row"
        }


@pytest.mark.parametrize("name", ["dp_sgd", "dp_gradients"])
def test_the_parameters_are_the_settings(name: str) -> None:
    (one,) = defence_named(name, epsilon=0.7, delta=1e-6, clip=2.5).guarantees()
    assert (one.epsilon, one.delta) == (0.7, "1e-06")
    assert "2.5" in one.mechanism
    assert all((one.unit, one.neighbours, one.trust, one.composition, one.hazards))


def test_combined_defences_promise_what_their_parts_do() -> None:
    assert defence_named("dp_sgd+rounding").guarantees() == defence_named("dp_sgd").guarantees()


def test_an_unset_delta_is_told_as_it_is_taken() -> None:
    assert defence_named("dp_sgd").guarantees()[0].delta == "one over the number of training rows"


def test_amplification_trusts_the_server_and_says_so() -> None:
    (full,) = defence_named("dp_gradients").guarantees()
    (amplified,) = defence_named("dp_gradients", amplified=True).guarantees()
    assert "need not be trusted" in full.trust
    assert "must not know which rows" in amplified.trust
    assert any("no promise against the server" in hazard for hazard in amplified.hazards)
    assert not any("no promise against the server" in hazard for hazard in full.hazards)


@pytest.mark.parametrize("name", ["dp_scores", "randomised_response"])
def test_budgets_of_answers_drawn_anew_add_up(name: str) -> None:
    (kept,), (anew,) = (defence_named(name, epsilon=0.5, repeats=k).guarantees() for k in (1, 8))
    assert (kept.epsilon, anew.epsilon) == (0.5, 4.0)
    assert "whoever asks again gets the same" in kept.composition
    assert "any two values of the passive parties' columns" in kept.neighbours
