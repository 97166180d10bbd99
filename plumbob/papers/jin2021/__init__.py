"""Jin, Chen, Hsu, Yu, Chen: CAFE: catastrophic data leakage in vertical federated learning (NeurIPS 2021)."""

from plumbob.papers.jin2021 import algebra, defences, descent

PARTS = (algebra, descent, defences)  # each has CLAIMS; those of one file share models and views
__all__ = ["PARTS"]
