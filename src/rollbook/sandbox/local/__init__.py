"""The provider `local`: a directory and subprocesses of this machine. It is no security boundary.

Rules:
* Everything that a sandbox started ends with it, and its directory is deleted.
"""
