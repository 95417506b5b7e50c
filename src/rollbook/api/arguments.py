"""Arguments of the public calls, looked at before anything is done with them.

Rules:
* What cannot be followed is refused by the argument's name; a value of another type is never taken for what it is in a
  condition.
* A setting is what the caller's object says now, whether it was given, assigned or changed in place.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import GrammarParseError, OmegaConfBaseException
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rollbook.api.direct_errors import DirectCallError
from rollbook.config.collection import E2ERolloutCollectionConfig, RolloutCollectionConfig
from rollbook.config.settings import settings_from

Collection = RolloutCollectionConfig | E2ERolloutCollectionConfig
Rows = Iterable[dict[str, Any]]


def checked_switches(**switches: object) -> None:
    """Refuse what is neither true nor false.

    Raises:
        DirectCallError: names the first one.

    """
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise DirectCallError(f"{name} must be True or False; found {value!r}")


def checked_rows(examples: Rows) -> Rows:
    """Return `examples`, unless they are no collection of rows.

    Raises:
        DirectCallError: a single row, a text, or what holds nothing.

    """
    if not isinstance(examples, Iterable) or isinstance(examples, str | bytes | Mapping):
        found = type(examples).__name__
        raise DirectCallError(f"examples must be rows, for example a list of mappings; found {found}")
    return examples


def checked_server(name: str | None) -> str | None:
    """Return the name of a server.

    Raises:
        DirectCallError: it is none.

    """
    if name is not None and not (isinstance(name, str) and name):
        raise DirectCallError(f"environment_server_name must be the name of a server, or None; found {name!r}")
    return name


def checked_folder(folder: Path | str) -> Path:
    """Return a folder by its whole path.

    Raises:
        DirectCallError: no path, or an empty one.

    """
    if not isinstance(folder, str | os.PathLike) or not os.fspath(folder):
        raise DirectCallError(f"record_output_dir must be a path; found {folder!r}")
    return Path(folder).absolute()


def checked_ids(task_ids: Iterable[str | int] | None) -> frozenset[str] | None:
    """Return the ids of tasks as text.

    Raises:
        DirectCallError: one text, which would be taken for its characters, or nothing that holds ids.

    """
    if task_ids is None:
        return None
    if not isinstance(task_ids, Iterable) or isinstance(task_ids, str | bytes):
        raise DirectCallError(f"task_ids must be ids, for example ['a', 'b'], or None; found {task_ids!r}")
    return frozenset(map(str, task_ids))


def checked_config(given: DictConfig | Mapping[str, Any]) -> DictConfig:
    """Return a configuration, which a mapping may be as well.

    Raises:
        DirectCallError: it is none.

    """
    if isinstance(given, DictConfig):
        return given
    if not isinstance(given, Mapping):
        raise DirectCallError(f"global_config_dict must be a configuration; found {type(given).__name__}")
    try:
        return OmegaConf.create(dict(given))
    except OmegaConfBaseException as error:
        raise DirectCallError(f"global_config_dict is no configuration: {_fault(error)}") from None
    except RecursionError:
        raise DirectCallError("global_config_dict holds itself, or is nested too deeply") from None


def _fault(error: OmegaConfBaseException) -> str:
    """Say where a configuration is none, and why, without the value."""
    where = f"`{error.full_key}`: " if error.full_key else ""
    is_text = isinstance(error, GrammarParseError)
    return where + ("an interpolation that cannot be read" if is_text else str(error).partition("\n")[0])


def checked_settings(config: object) -> Collection:
    """Return settings of a collection, held to their rules once more: they may have been changed since they were made.

    Raises:
        DirectCallError: settings of something else, or none.
        ConfigError: options that do not fit.

    """
    if not isinstance(config, Collection):
        found = type(config).__name__
        raise DirectCallError(
            f"config must be a RolloutCollectionConfig or an E2ERolloutCollectionConfig; found {found}"
        )
    return settings_from(type(config), dict(_said(config)), by_name=True)


def _said(config: BaseModel) -> Iterator[tuple[str, object]]:
    """Yield what settings say now, except what nobody gave and nobody changed."""
    fields = type(config).model_fields
    for name, value in vars(config).items():
        if name in config.model_fields_set or (name in fields and not _is_default(value, fields[name], config)):
            yield name, value
    yield from (config.model_extra or {}).items()


def _is_default(value: object, field: FieldInfo, config: BaseModel) -> bool:
    if value is field.default:
        return True
    is_container = isinstance(value, list | dict | set)
    return is_container and value == field.get_default(call_default_factory=True, validated_data=vars(config))
