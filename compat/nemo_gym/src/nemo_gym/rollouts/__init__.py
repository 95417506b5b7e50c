"""Collecting rollouts, and what is kept of them."""
