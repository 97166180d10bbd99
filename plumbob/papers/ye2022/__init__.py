"""Ye et al.: Feature reconstruction attacks at the cut layer of split networks, and defences (2022)."""

from plumbob.papers.ye2022 import attacks, defences, remarks

PARTS = (attacks, defences, remarks)  # each has CLAIMS; those of one file share models and views
__all__ = ["PARTS"]
