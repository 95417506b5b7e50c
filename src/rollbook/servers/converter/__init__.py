"""The Responses dialect ↔ the Chat dialect, both ways.

Rules:
* What one dialect cannot say in the other is refused by name, never dropped.
"""
