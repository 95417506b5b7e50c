"""The capture of token ids, as far as a model server asks for it: see docs/compat.md for what is not there."""

from rollbook import current_capture_context as current_capture_context
