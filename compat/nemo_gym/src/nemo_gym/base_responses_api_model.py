"""What a model server derives from."""

from fastapi import Body as Body
from rollbook import (
    BaseResponsesAPIModelConfig as BaseResponsesAPIModelConfig,
    SimpleResponsesAPIModel as SimpleResponsesAPIModel,
    start_model_execution as start_model_execution,
)
