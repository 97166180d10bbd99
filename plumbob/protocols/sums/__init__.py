"""Encrypted training: what crosses are ciphertexts, and sums that are opened.

Protocols: encrypted_logistic_regression, secure_boost.
Shared with attacks, defences and claims: taylor_regression (its batches, targets and masks), histogram_boosting (gradients, bins
and trees), gradient_plaintexts (how gradients are packed), hidden_codes (what a cheating party adds to them).
"""
