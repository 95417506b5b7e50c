"""Dataset entries of a server block.

Rules:
* Train and validation data name a licence of a closed list; example data need none.
* Where the data come from is told once: `source`, or one of the two legacy identifiers, which mirror it.

Source: servers.md §1.9.
"""

import functools
import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt, TypeAdapter, model_validator


class License(StrEnum):
    """The licences that train and validation data may have."""

    APACHE_2 = "Apache 2.0"
    MIT = "MIT"
    CC_BY_4 = "Creative Commons Attribution 4.0 International"
    CC_BY_SA_4 = "Creative Commons Attribution-ShareAlike 4.0 International"
    CC_BY_SA_4_SHORT = "CC BY-SA 4.0"
    CC_BY_SA_4_SPDX = "CC-BY-SA-4.0"
    CC_BY_NC_3 = "CC BY-NC 3.0"
    NVIDIA_INTERNAL = "NVIDIA Internal Use Only, Do Not Distribute"
    NVIDIA_EVALUATION = "NVIDIA Evaluation Dataset License Agreement"
    TBD = "TBD"
    GPL_3 = "GNU General Public License v3.0"


class GitlabIdentifier(BaseModel):
    """A file of a data set kept in a GitLab model registry."""

    model_config = ConfigDict(defer_build=True)

    dataset_name: str
    version: str
    artifact_fpath: str


class HuggingFaceIdentifier(BaseModel):
    """A data set, or one file of it, on the Hugging Face hub."""

    model_config = ConfigDict(defer_build=True)

    repo_id: str
    artifact_fpath: str | None = None


class GitlabSource(GitlabIdentifier):
    """`source` of type `gitlab`."""

    type: Literal["gitlab"]


class HuggingFaceSource(HuggingFaceIdentifier):
    """`source` of type `huggingface`."""

    type: Literal["huggingface"]


Source = Annotated[GitlabSource | HuggingFaceSource, Field(discriminator="type")]
AgentNames = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
"""A list of agent types; a bare string is a list of one."""


class _Entry(BaseModel):
    """What both kinds of dataset entries say."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    name: str
    jsonl_fpath: str
    prepare_dependencies: list[str] = Field(default_factory=list)
    taskset: str | None = None
    num_repeats: PositiveInt = 1
    prompt_config: str | None = None
    agent: str | None = None
    allowed_agents: AgentNames | None = None


class DatasetConfig(_Entry):
    """A train, validation or example data set."""

    type: Literal["train", "validation", "example"]
    prepare_script: Path | None = None
    source: Source | None = None
    gitlab_identifier: GitlabIdentifier | None = None
    huggingface_identifier: HuggingFaceIdentifier | None = None
    license: License | None = None

    @model_validator(mode="after")
    def _train_data_name_a_license(self) -> Self:
        if self.type != "example" and self.license is None:
            raise ValueError(f"`license` is required for {self.type} data; one of: {', '.join(License)}")
        return self

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        identifiers = [i for i in (self.gitlab_identifier, self.huggingface_identifier) if i is not None]
        if self.source is not None and identifiers:
            raise ValueError("`source` excludes `gitlab_identifier` and `huggingface_identifier`; keep `source`")
        if self.source is not None:
            self._mirror_source(self.source)
        elif identifiers:
            self._mirror_identifier()
        return self

    def _mirror_source(self, source: GitlabSource | HuggingFaceSource) -> None:
        if isinstance(source, GitlabSource):
            self.gitlab_identifier = source
        else:
            self.huggingface_identifier = source

    def _mirror_identifier(self) -> None:
        warnings.warn(
            f"dataset {self.name}: write `source: {{type: gitlab | huggingface, …}}` instead of the identifiers",
            DeprecationWarning,
            stacklevel=2,
        )
        if self.gitlab_identifier is not None:
            self.source = GitlabSource(type="gitlab", **self.gitlab_identifier.model_dump())
        elif self.huggingface_identifier is not None:
            self.source = HuggingFaceSource(type="huggingface", **self.huggingface_identifier.model_dump())


class BenchmarkDatasetConfig(_Entry):
    """A benchmark data set, which its prepare script writes; `agent` pins the agent that runs it."""

    type: Literal["benchmark"]
    prepare_script: Path


AnyDatasetConfig = Annotated[DatasetConfig | BenchmarkDatasetConfig, Field(discriminator="type")]


@functools.cache
def _adapter() -> TypeAdapter[DatasetConfig | BenchmarkDatasetConfig]:
    return TypeAdapter(AnyDatasetConfig)


def dataset_from(entry: object) -> DatasetConfig | BenchmarkDatasetConfig:
    """Return the typed form of a `datasets` entry.

    Raises:
        pydantic.ValidationError: an entry that does not fit.

    """
    return _adapter().validate_python(entry)
