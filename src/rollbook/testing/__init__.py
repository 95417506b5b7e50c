"""Stand-ins and checks that ship with Rollbook, for tests of environments and of Rollbook itself.

Rules:
* Nothing that serves or runs imports this.
"""
