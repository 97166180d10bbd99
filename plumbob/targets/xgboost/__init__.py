"""xgboost's federated mode as it is: real processes, and what crosses between them."""
