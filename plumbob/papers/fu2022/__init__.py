"""Fu et al.: Label inference attacks against vertical federated learning (USENIX Security 2022)."""

from plumbob.papers.fu2022 import passive_and_direct

PARTS = (passive_and_direct,)
__all__ = ["PARTS"]
