"""The shapes of the Responses and Chat dialects, and the client of endpoints that speak them.

Rules:
* A shape names fields as the wire does: what a request may not hold is refused, what a reply lacks gets its default.
"""
