"""Threat models, by name: who is curious and what it knows beyond its messages.

What they are made of stands in `plumbob/grants.py`, the views they cut in `plumbob/views.py`; all of it is offered here too.
"""

from __future__ import annotations

from plumbob.grants import (
    AnyGradient,
    AuxiliaryRows,
    Deviation,
    Grant,
    KnownLabels,
    KnownPeople,
    LowBits,
    OwnSteps,
    Schema,
    Threat,
    WhiteBox,
    describe,
)
from plumbob.registry import Registry
from plumbob.views import View, cut

__all__ = [
    "LUO2021",
    "THREATS",
    "AnyGradient",
    "AuxiliaryRows",
    "Deviation",
    "Grant",
    "KnownLabels",
    "KnownPeople",
    "LowBits",
    "OwnSteps",
    "Schema",
    "Threat",
    "View",
    "WhiteBox",
    "cut",
    "describe",
]

LUO2021 = Threat("active", "the active party, which knows the model, column names and ranges", (WhiteBox(), Schema()))
_OWN = (
    LUO2021,
    Threat(
        "active-model-only",
        "the active party, which knows the model but not the column names or ranges",
        (WhiteBox(),),
        identity="the active party, which knows the model but no names or ranges",
    ),
    Threat("active-black-box", "the active party, which sees the scores but not the model", (Schema(),)),
    Threat(
        "active-auxiliary",
        "the active party, which knows the model and 100 complete rows of other people",
        (WhiteBox(), Schema(), AuxiliaryRows(100)),
    ),
    Threat(
        "active-black-box-auxiliary",
        "the active party, which sees the scores but not the model and has 100 complete rows of other people",
        (Schema(), AuxiliaryRows(100)),
    ),
    Threat(
        "active-known-people",
        "the active party, which sees the scores or messages but not the model and knows 20 of the people in full",
        (Schema(), KnownPeople(20)),
    ),
    Threat(
        "collusion",
        "the active party colluding with all passive parties but one, which know the model, column names and ranges",
        (WhiteBox(), Schema()),
        colluding_all_but=1,
        identity="the active party with every passive party but one, which know the model, names and ranges",
    ),
    Threat(
        "active-training",
        "the active party, which sees the training messages and knows column names and ranges",
        (Schema(),),
        identity="the active party, which sees the messages of training and knows column names and ranges",
    ),
    Threat(
        "corrupted-coordinator",
        "the active party colluding with the coordinator, which sees the training messages and can decrypt them",
        (Schema(),),
        corrupted=True,
        identity="the active party with the coordinator, which sees the messages of training and opens what is encrypted",
    ),
    Threat(
        "coordinator",
        "the coordinator alone, which has neither label nor columns and knows column names and ranges",
        (Schema(),),
        corrupted=True,
        active=False,
    ),
    Threat(
        "passive-training",
        "a passive party, which has no label, sees the training messages and knows column names and ranges",
        (Schema(),),
        active=False,
        identity="a passive party, which has no label, sees the messages of training and knows column names and ranges",
    ),
    Threat(
        "passive-known-people",
        "a passive party, which has no label, sees the training messages and knows 20 of the people in full",
        (Schema(), KnownPeople(20)),
        active=False,
    ),
    Threat(
        "passive-known-labels",
        "a passive party, which sees the training messages and knows the labels of 4 of the people for each class",
        (Schema(), KnownLabels(4)),
        active=False,
    ),
    Threat(
        "active-low-bits",
        "the active party that sets the low bits of its gradients, which sees the training messages and knows column names and "
        "ranges",
        (Schema(), LowBits()),
    ),
    Threat(
        "active-any-gradient",
        "the active party that sends any gradient, which sees the training messages and knows column names and ranges",
        (Schema(), AnyGradient()),
    ),
    Threat(
        "active-any-gradient-auxiliary",
        "the active party that sends any gradient, which sees the training messages and has 100 complete rows of other people",
        (Schema(), AuxiliaryRows(100), AnyGradient()),
    ),
    Threat(
        "passive-own-steps",
        "a passive party that trains its part of the model at rates of its own, which sees the training messages and knows the "
        "labels of 4 of the people for each class",
        (Schema(), KnownLabels(4), OwnSteps()),
        active=False,
    ),
)
THREATS: Registry[Threat] = Registry("threat", lambda: _OWN, lambda entry: isinstance(entry, Threat), in_order=True)
