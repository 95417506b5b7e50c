"""Servers: resources, agents, models and environments behind HTTP, their client and their launchers."""
