"""Encrypted training: encrypted_logistic_regression and secure_boost. Helpers: plaintexts, histograms, hidden codes."""
