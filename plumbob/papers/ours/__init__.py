"""What we claim ourselves, checked like any paper's claim."""

from plumbob.papers.ours import ceilings, scores, unseen

PARTS = (scores, unseen, ceilings)  # each has CLAIMS; those of one file share models and views
__all__ = ["PARTS"]
