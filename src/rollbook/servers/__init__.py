"""Servers: resources, agents, models and environments behind HTTP, their client and their launchers.

Rules:
* Nothing here knows a plan, a ledger or a lane; a server is asked, and answers.
"""
