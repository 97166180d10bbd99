"""Weng et al.: Practical privacy attacks on vertical federated learning (2022): attacks on encrypted training."""

from plumbob.papers.weng2022 import defences, multiplication, sums

PARTS = (multiplication, sums, defences)  # each has CLAIMS; those of one file share models and views
__all__ = ["PARTS"]
