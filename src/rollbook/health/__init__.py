"""Saved rollouts → findings: what the evidence says about how a run went, whatever it scored.

Rules:
* A check says what it found, or that it had nothing to go by; only `examine` and the reductions give verdicts.
* Nothing is read from disk here: lines and records are handed over.
"""
