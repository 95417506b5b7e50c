"""Scores → text for people, JSON for programs.

Rules:
* Nothing here computes a score, and no score is shown without what it covers.
"""
