"""Kinds of targets: what a column's values are like, or the label. An attack declares which kinds it addresses."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from plumbob.federation import FloatArray


class Kind(StrEnum):
    """What is attacked."""

    TWO_VALUED = "two-valued"
    WHOLE = "whole numbers"  # or other multiples of a step: cents, codes
    NUMBER = "any number"
    LABEL = "label"


COLUMNS = (Kind.TWO_VALUED, Kind.WHOLE, Kind.NUMBER)


def kind_of(values: FloatArray, grid: float) -> Kind:
    """The kind of a column from its cells and the step of its grid, 0 where it has none.

    >>> kind_of(np.array([0.0, 1.0, 1.0]), 1.0).value, kind_of(np.array([0.1, 0.2, 0.35]), 0.0).value
    ('two-valued', 'any number')
    """
    if len(np.unique(values)) <= 2:
        return Kind.TWO_VALUED
    return Kind.WHOLE if grid > 0 else Kind.NUMBER
