"""Attacks on labels: boosted_splits reads the labels and split sides of xgboost's own federated training."""
