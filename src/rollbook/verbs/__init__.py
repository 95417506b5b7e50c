"""One page a command: the steps of each, told in order.

Rules:
* A verb decides nothing that a room decides, prints nothing, and starts no server.
"""
