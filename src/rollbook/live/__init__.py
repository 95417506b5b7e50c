"""Records → a line about where the run is.

Rules:
* The view is handed events and never asks the engine; what it shows is folded from records by `records.standing`.
* A terminal gets one line that is redrawn; a file gets whole lines, bounded in number, never a carriage return.
* The clock and the stream are arguments.

Source: collection.md §3.9; case RC-56.
"""
