"""What a configuration says of the capture of token ids."""

from rollbook import (
    TokenIdCapture as TokenIdCapture,
    TokenIdCaptureConfig as TokenIdCaptureConfig,
    token_id_capture_config as token_id_capture_config,
)
