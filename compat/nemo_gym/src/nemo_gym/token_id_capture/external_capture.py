"""Captures by a model's own worker: none is here."""

from rollbook import (
    ExternalCaptureHandler as ExternalCaptureHandler,
    make_external_capture_handler as make_external_capture_handler,
)
