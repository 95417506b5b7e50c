"""Collects rollouts of language-model agents and accounts for every one."""

