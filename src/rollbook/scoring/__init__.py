"""Outcomes turned into numbers, purely: means, standard errors, pass@k, aggregate metrics, coverage lines."""
