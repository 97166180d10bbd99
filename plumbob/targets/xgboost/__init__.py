"""xgboost's federated mode, unmodified: real processes and the messages between them."""
