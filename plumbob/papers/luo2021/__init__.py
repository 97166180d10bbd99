"""Luo, Wu, Xiao, Ooi: Feature inference attack on model predictions in vertical federated learning (ICDE 2021)."""

from plumbob.papers.luo2021 import defended, equations_and_paths, generative

PARTS = (equations_and_paths, generative, defended)  # each has CLAIMS; those of one file share models and views
__all__ = ["PARTS"]
