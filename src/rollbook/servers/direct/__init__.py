"""The direct way from a request to a plain handler, beside the framework's general one.

Rules:
* What goes on the wire is what the general way puts there, byte for byte; whatever is not plain takes the general way.
"""
