"""Attacks on the outputs of a cut layer.

linear_equations and leverage_sampling as published (ye2022, Algorithms 1 and 2); ours: binary_columns.
Helpers: what was received, its span, and four ways to find two-valued columns in it.
"""
