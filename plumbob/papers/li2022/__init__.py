"""Li et al.: Label leakage and protection in two-party split learning (ICLR 2022)."""

from plumbob.papers.li2022 import leak_auc

PARTS = (leak_auc,)
__all__ = ["PARTS"]
