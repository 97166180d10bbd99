"""Attacks that learn from complete rows of other people: shadow_inversion (jiang2022), sdar (zhu2025), and ours."""
