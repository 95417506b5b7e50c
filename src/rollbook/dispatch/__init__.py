"""Owed rollouts → records: lanes that each carry one rollout at a time.

Rules:
* Dispatch opens no file, prints nothing and computes no metric; it is given a `Ledger` and `observe`.
* No attempt number is ever sent twice from here, and none is sent before it is durable.
"""
