"""Owed rollouts → records: lanes that each carry one rollout at a time.

Rules:
* Dispatch opens no file, prints nothing and computes no metric; it is given `write` and `observe`.
* No request is ever sent twice from here.
"""
