"""The settings of the commands about data sets: render, collate, download, upload.

Rules:
* What is required is said here; the commands add what goes with what.

Source: servers.md §8.7, §8.9, §10.2.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from rollbook.config.dataset_preparation import DatasetPreparationConfig
from rollbook.config.settings import BaseNeMoGymCLIConfig


class CollateConfig(DatasetPreparationConfig):
    """What `gym dataset collate` is asked."""

    output_dirpath: str
    overwrite: bool = False
    mode: Literal["train_preparation", "example_validation"]


class RenderConfig(BaseNeMoGymCLIConfig):
    """What `gym dataset render` is asked."""

    input_jsonl_fpath: str
    prompt_config: str
    output_jsonl_fpath: str
    overwrite: bool = False


class HubAccess(BaseModel):
    """How the hub is reached: the token that is shown, if any."""

    model_config = ConfigDict(extra="ignore", defer_build=True)

    hf_token: str | None = None


class DownloadConfig(HubAccess, BaseNeMoGymCLIConfig):
    """What `gym dataset download` is asked."""

    repo_id: str
    artifact_fpath: str | None = None
    split: str | None = None
    revision: str | None = None
    output_fpath: str | None = None
    overwrite: bool = False
    output_dirpath: str | None = None


class UploadConfig(HubAccess, BaseNeMoGymCLIConfig):
    """What `gym dataset upload` is asked."""

    input_jsonl_fpath: str
    dataset_name: str
    split: str | None = None
    revision: str | None = None
    hf_organization: str | None = None
    hf_dataset_prefix: str = "Nemotron-RL"
    hf_collection_slug: str | None = None
    private: bool = False
    create_pr: bool = False
    commit_message: str | None = None
    commit_description: str | None = None
