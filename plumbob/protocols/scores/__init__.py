"""Joint prediction: the active party gets scores. logistic_regression, decision_tree, random_forest, boosted_trees,
neural_network, and split_models with a model per party.
"""
