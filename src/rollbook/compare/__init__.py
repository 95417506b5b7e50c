"""Two runs → a difference that can be defended: pairs, tests, intervals, and what would decide.

Rules:
* Everything here is pure and plain Python; chance comes from a seed that is an argument.
* What is compared is tasks: the repeats of one task are one measurement of it.
"""
