"""What is assumed: features, priors, likelihoods."""
