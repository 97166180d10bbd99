"""Attacks that learn from complete rows of other people: shadow_inversion (jiang2022)."""
