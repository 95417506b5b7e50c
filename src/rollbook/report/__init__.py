"""Values turned into text and JSON."""
