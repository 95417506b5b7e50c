"""What an exchange shows → how the attempt ended → what to do next. Pure.

Rules:
* Nothing here waits or sends; a table tests every line.
"""
