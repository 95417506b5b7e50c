"""Records ↔ disk: results, failures and materialized inputs of one run.

Rules:
* A line is committed when its newline is on disk; whoever waited for it is released after that.
* Files written whole appear whole: a temporary file, fsync, rename, fsync of the folder.
* Nothing on disk is deleted unless a person said so.
"""
