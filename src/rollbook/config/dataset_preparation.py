"""How declared data sets are made ready, wherever that is done.

Rules:
* Hugging Face is where data sets are fetched from; a GitLab registry is refused by name.

Source: servers.md §8.9, §10.2.
"""

from typing import Literal, Self

from pydantic import model_validator

from rollbook.config.settings import BaseNeMoGymCLIConfig
from rollbook.errors import ConfigError

TaskDataValidation = Literal["off", "warn", "error", "auto"]


class DatasetPreparationConfig(BaseNeMoGymCLIConfig):
    """How declared data sets are made ready, by `gym dataset collate` and by `gym eval run --split`."""

    should_download: bool = False
    data_source: Literal["huggingface", "gitlab"] = "huggingface"
    overwrite_metrics_conflicts: bool = False
    task_data_validation: TaskDataValidation = "auto"

    @model_validator(mode="after")
    def _no_gitlab(self) -> Self:
        if self.data_source == "gitlab":
            raise ConfigError(
                "data_source=gitlab: GitLab registries are not supported; give the data sets a `source` of type "
                "huggingface, or put their files in place"
            )
        return self
