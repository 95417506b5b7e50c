"""Checks for the tests of a component."""
