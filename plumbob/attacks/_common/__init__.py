"""What several families of attacks share: releases as likelihoods, lattice points, models with gradients."""
