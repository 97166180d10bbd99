"""Jiang, Zhou, Grossklags: Comprehensive analysis of privacy leakage in VFL during prediction (PoPETs 2022)."""

from plumbob.papers.jiang2022 import black_box, defences, white_box

PARTS = (white_box, black_box, defences)  # each has CLAIMS; those of one file share models and views
__all__ = ["PARTS"]
