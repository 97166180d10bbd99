"""A threat is an object, not a class."""

from plumbob.threats import AuxiliaryRows, Schema, Threat

FEW_ROWS = Threat(
    "active-few-rows",
    "the active party, which has 20 complete rows of other people and knows column names and ranges",
    (Schema(), AuxiliaryRows(20)),
)
