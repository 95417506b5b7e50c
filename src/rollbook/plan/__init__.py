"""Source rows → owed rollouts: which agent, how many repeats, in which order, where to. Pure.

Rules:
* No disk, no clock, no server: a plan is a function of its rows and its options.
* Every row at fault is found before an error is raised, and nothing is sent before the plan is whole.
"""
