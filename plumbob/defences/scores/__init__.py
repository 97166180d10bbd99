"""Defences of joint prediction: on scores (rounding, label_only, noise, purifier, codebook, dp_scores,
randomised_response, verification), on training (dropout, dp_sgd) and on knowledge (hide_model).
"""
