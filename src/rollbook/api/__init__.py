"""The public names of collection, thin faces over the rooms.

Rules:
* Nothing is decided here, and nothing is printed.
"""
