"""Attacks on the gradients that workers of split training send up.

CAFE (jin2021) and its rivals, by descent: cafe, dlg, cosine_gradients, sapag, batch_norm_prior, group_consistency.
Ours, by linear algebra: gradient_peeling. Helpers: what a server holds, rows out of batches, blocks of networks inverted.
"""
