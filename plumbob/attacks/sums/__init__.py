"""Attacks on encrypted training: opened products of logistic regression and opened histograms of boosting.

reverse_multiplication and reverse_sum as published (weng2022); ours: exact_multiplication, code_decoding, split_sides.
Helpers: the equations a coordinator reads, the sums an active party opens, partitions with given sums.
"""
