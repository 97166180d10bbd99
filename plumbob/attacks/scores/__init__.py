"""Attacks on the scores of a joint prediction.

Published: equation_solving (ESA), path_restriction (PRA), generative_regression (GRNA), gradient_inversion (GIA),
chebyshev_centre.
Ours: posterior_mean and lattice_decoding on logistic regression, linearised_posterior and
grid_enumeration on networks, forest_boxes on forests.
Helpers: equations under a defence, boxes, what columns suggest of each other, Gauss-Newton in a box, lines through a grid.
"""
