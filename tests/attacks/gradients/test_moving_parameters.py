"""Rows followed from round to round: who is who."""

from __future__ import annotations

import numpy as np
import torch

from plumbob.attacks.gradients._batch_unmixing import Unmixed
from plumbob.attacks.gradients._moving_parameters import Round, _linked_again, _Person


def round_of(batch: list[int], *directions: int) -> Round:
    """A round whose network passes inputs on, and whose rows put in unit vectors."""
    rows = np.eye(4)[list(directions)]
    nothing = np.zeros(len(rows))
    return Round(np.array(batch), lambda x: x, None, Unmixed(rows, nothing + 1.0, nothing))


def test_one_who_is_taken_for_two_is_one() -> None:
    """Both are as good; what one is seen as is the other's no more, and who is seen nowhere is dropped."""
    rounds = [round_of([0, 1], 0, 1), round_of([0, 2], 0, 2), round_of([0, 1], 1, 0)]
    x = torch.eye(4)[0]
    people = [_Person(x, {0: 0}, miss=0.0), _Person(x.clone(), {0: 0}, miss=0.0)]
    _linked_again(rounds, people)
    assert [person.seen for person in people] == [{0: 0, 1: 0, 2: 1}]
