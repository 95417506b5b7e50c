"""Servers brought up, watched and stopped: in this process, as processes, or by somebody else.

Rules:
* What was started is stopped, whatever happens in between.
"""
