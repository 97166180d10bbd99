"""Takahashi et al.: Eliminating label leakage in tree-based vertical federated learning (2023): labels from the rows of nodes."""

from plumbob.papers.takahashi2023 import instance_space

PARTS = (instance_space,)  # each has CLAIMS; those of one file share models and views
__all__ = ["PARTS"]
