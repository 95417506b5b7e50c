"""Which files hold the answers: those that the server's block names, else those of the whole configuration.

Rules:
* A file that is named must be there; one that the configuration merely mentions may not have been made yet.

Source: servers.md §1.9.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from rollbook import ConfigError, resolve_read_path


def answer_files(named: str | list[str] | None, configuration: DictConfig | Mapping[str, object]) -> tuple[Path, ...]:
    """Return the data sets to learn answers from.

    Raises:
        ConfigError: one of `named` is not there.

    """
    if named is not None:
        return tuple(_required(name) for name in ([named] if isinstance(named, str) else named))
    paths = (resolve_read_path(name) for name in dict.fromkeys(_mentioned(configuration)))
    return tuple(path for path in paths if path.is_file())


def _required(name: str) -> Path:
    path = resolve_read_path(name)
    if not path.is_file():
        raise ConfigError(
            f"answers_fpath names {name}, which no search root holds; give an existing JSONL file, or null for the "
            "data sets of the configuration"
        )
    return path


def _mentioned(configuration: DictConfig | Mapping[str, object]) -> Iterator[str]:
    """Yield the `jsonl_fpath` of every data set, the run's own input first."""
    plain = (
        OmegaConf.to_container(configuration, resolve=False) if isinstance(configuration, DictConfig) else configuration
    )
    if not isinstance(plain, Mapping):
        return
    given = plain.get("input_jsonl_fpath")
    if isinstance(given, str):
        yield given
    yield from _data_sets_in(plain)


def _data_sets_in(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        path = value.get("jsonl_fpath")
        if isinstance(path, str) and "${" not in path and path != "???":
            yield path
        for part in value.values():
            yield from _data_sets_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from _data_sets_in(part)
