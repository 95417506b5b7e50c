"""What every command's settings have in common: they are read from the merged configuration.

Rules:
* A settings class ignores keys that are not its own; the configuration holds much more. Who gives options by name is
  warned of a name that is none.
* Everything that is missing is told at once, with what to type; a message shows no value that was refused.
* An option that has been removed is refused by name, never ignored.

Source: servers.md §1.10, §10.1; collection.md §10.1.
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import ClassVar, Final, TypeVar

from omegaconf import DictConfig, flag_override
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, ValidationError, ValidationInfo, model_validator

from rollbook.config.missing import resolved
from rollbook.config.names import CONFIG_PATHS_KEY, HEAD_SERVER_KEY
from rollbook.config.tree import did_you_mean, dotted
from rollbook.errors import ConfigError

_USAGE_EXIT_CODE = 2
_FLAGS: Final = {
    "dispatch_budget_s": ("--budget", ""),
    "drain_margin_s": ("--drain-margin", ""),
    "health_check_workers": ("--health-check-workers", ""),
    "interrupt_grace_s": ("--grace", ""),
    "limit": ("--limit", "0 runs no task, N the first N tasks; leave it out to run all"),
    "num_repeats": ("--num-repeats", ""),
    "num_samples_in_parallel": (
        "--concurrency",
        "give a whole number from 1 on; as many as pays is written --concurrency auto",
    ),
    "min_coverage": ("--min-coverage", ""),
    "retry_for_s": ("--retry-for", ""),
    "task_shard": ("--task-shard", ""),
    "rollout_timeout_s": ("--timeout", "leave it out to let rollouts take as long as they need"),
}
"""Numbers that have a flag: the flag, and what values are right where the refusal itself does not say it."""

_REQUIRED: Final = {
    "dataset_name": "--name NAME",
    "input_glob": "--input-glob A,B",
    "input_jsonl_fpath": "--input FILE",
    "materialized_inputs_jsonl_fpath": "--inputs FILE",
    "mode": "--mode MODE",
    "output_dirpath": "--output-dir DIR",
    "output_jsonl_fpath": "--output FILE",
    "prompt_config": "--prompt-config PATH",
    "repo_id": "--repo-id OWNER/NAME",
    "split": "--split SPLIT",
}
"""What is required, and the flag that gives it."""


_MERGED: Final = "a merged configuration"
"""The context in which settings are read out of one."""
_WHOLE: Final = frozenset({CONFIG_PATHS_KEY, HEAD_SERVER_KEY})
"""Keys by which a mapping is told for one as well."""
_CALLER: Final = 3
"""Whoever makes a settings class, seen from its validators."""


class BaseNeMoGymCLIConfig(BaseModel):
    """The base of the settings of a command; takes a `DictConfig`, a mapping, or options by name."""

    model_config = ConfigDict(extra="ignore", defer_build=True, hide_input_in_errors=True)

    other_names: ClassVar[frozenset[str]] = frozenset()
    """Names that are taken although no field has them; a subclass adds to those of its bases."""

    @model_validator(mode="before")
    @classmethod
    def _unwrap(cls, data: object, info: ValidationInfo) -> object:
        if isinstance(data, DictConfig):
            return resolved(data)
        if isinstance(data, dict) and info.context != _MERGED and not _WHOLE & data.keys():
            strays = list(_strays(cls, data))
            if strays:
                warnings.warn("\n".join(strays), UserWarning, stacklevel=_CALLER)
        return data


def _strays(model: type[BaseModel], options: Iterable[str]) -> Iterator[str]:
    """Yield a line for each option that `model` does not have, with the nearest that it has."""
    if model.model_config.get("extra") != "ignore":
        return
    others = {name for base in model.__mro__ for name in vars(base).get("other_names", ())}
    others |= {alias for field in model.model_fields.values() for alias in _aliases(field.validation_alias)}
    for name in options:
        if name not in model.model_fields and name not in others:
            near = did_you_mean(name, model.model_fields)
            yield f"{model.__name__} has no option `{name}`, which does nothing.{near}"


def _aliases(alias: str | AliasPath | AliasChoices | None) -> Iterator[str]:
    """Yield the names under which a field is taken besides its own."""
    for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
        if choice is not None:
            yield str(choice.path[0]) if isinstance(choice, AliasPath) else choice


class RemovedRolloutOptionsMixin(BaseModel):
    """Refuses options that earlier versions had, so that none is silently ignored."""

    model_config = ConfigDict(defer_build=True)

    removed_options: ClassVar[Mapping[str, str]] = {
        "retry_invalid_judge_responses": "saved answers are judged again by gym eval reverify --judge-failed-only",
    }
    other_names: ClassVar[frozenset[str]] = frozenset(removed_options)

    @model_validator(mode="before")
    @classmethod
    def _refuse_removed(cls, data: object) -> object:
        used = [name for name in cls.removed_options if isinstance(data, (dict, DictConfig)) and data.get(name)]
        if used:
            lines = "; ".join(f"`{name}`: {cls.removed_options[name]}" for name in used)
            raise ConfigError(f"removed options are set, take them out: {lines}")
        return data


class UploadMixin(BaseModel):
    """`upload_rollouts`, which also answers to the name it had."""

    model_config = ConfigDict(defer_build=True)

    other_names: ClassVar[frozenset[str]] = frozenset({"upload_rollouts_to_wandb"})

    upload_rollouts: bool = True

    @model_validator(mode="before")
    @classmethod
    def _accept_old_name(cls, data: object) -> object:
        old = "upload_rollouts_to_wandb"
        if not isinstance(data, (dict, DictConfig)) or data.get(old) is None:
            return data
        warnings.warn(f"`{old}` is now `upload_rollouts`", DeprecationWarning, stacklevel=_CALLER)
        if isinstance(data, DictConfig):
            return _with_default(data, "upload_rollouts", data[old])
        return {"upload_rollouts": data[old], **data}


def _with_default(cfg: DictConfig, key: str, value: object) -> DictConfig:
    """Return a copy of `cfg` in its place in the whole, which its interpolations may lead to."""
    copied = copy(cfg)
    if key not in copied:
        with flag_override(copied, ["readonly", "struct"], values=False):
            copied[key] = value
    return copied


Settings = TypeVar("Settings", bound=BaseModel)


def settings_from(model: type[Settings], cfg: DictConfig | Mapping[str, object], *, by_name: bool = False) -> Settings:
    """Return a command's settings out of the merged configuration; `by_name` has none of them under an alias.

    Raises:
        ConfigError: required options that are missing, or numbers that flags do not take (both exit code 2), or options
            that do not fit.

    """
    try:
        return model.model_validate(cfg, context=_MERGED, by_name=by_name or None, by_alias=False if by_name else None)
    except ValidationError as error:
        raise _as_config_error(error) from None


def _as_config_error(error: ValidationError) -> ConfigError:
    details = error.errors(include_url=False, include_input=False)
    missing = [str(detail["loc"][0]) for detail in details if detail["type"] == "missing" and len(detail["loc"]) == 1]
    if missing:
        example, named = missing[0], ", ".join(_REQUIRED[name] for name in missing if name in _REQUIRED)
        failure = ConfigError(
            f"missing required configuration: {', '.join(missing)}. "
            f"Provide each via its flag ({named or 'see --help'}) or as a +{example}=<value> override."
        )
        failure.exit_code = _USAGE_EXIT_CODE
        return failure
    lines = [_explained(detail["loc"], detail["msg"].removeprefix("Value error, ")) for detail in details]
    failure = ConfigError("\n".join(dict.fromkeys(lines)))
    if all(detail["loc"] and str(detail["loc"][0]) in _FLAGS for detail in details):
        failure.exit_code = _USAGE_EXIT_CODE
    return failure


def _explained(place: tuple[int | str, ...], problem: str) -> str:
    if not place:
        return problem
    flag, rule = _FLAGS.get(str(place[0]), ("", ""))
    return f"`{dotted(place)}`{flag and f' ({flag})'}: {problem}{rule and f'; {rule}'}"


__all__ = ["BaseNeMoGymCLIConfig", "RemovedRolloutOptionsMixin", "UploadMixin", "settings_from"]
