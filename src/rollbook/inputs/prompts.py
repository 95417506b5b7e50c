"""Prompt templates: a row's own fields → the messages that a model is sent.

Rules:
* A template never replaces a prompt that a row brings along, and an episode task has one in its `task_input`.
* `{{` and `}}` are literal braces; a field that a row lacks is named together with the ones it has.

Source: servers.md §8.7.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, ValidationError

from rollbook.config.roots import require_read_path
from rollbook.errors import ConfigError, InputError
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import RESPONSES_CREATE_PARAMS_KEY
from rollbook.records.source import SourceRow, is_materialized

_SHOWN: Final = 200
_LISTED: Final = 20


class PromptConfig(BaseModel):
    """A user template and an optional system template, filled by `str.format_map` over a row's top-level fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    user: str
    system: str | None = None


def load_prompt_config(path: str | Path) -> PromptConfig:
    """Read the template at `path`; a relative one is looked for under the search roots.

    Raises:
        ConfigPathNotFoundError: no root holds it.
        ConfigError: no YAML mapping of `user` and, perhaps, `system`.

    """
    import yaml  # noqa: PLC0415  a template is rare; its parser is not paid by every run

    from rollbook.config.placed_yaml import plain_yaml  # noqa: PLC0415  as above

    found = require_read_path(path, "prompt template")
    try:
        return PromptConfig.model_validate(plain_yaml(found.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError, UnicodeDecodeError, RecursionError) as error:
        said = _in_a_line(error) if isinstance(error, ValidationError) else error
        raise ConfigError(f"{found}: not a prompt template with `user` and, perhaps, `system`: {said}") from error


def _in_a_line(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(": ".join((*map(str, detail["loc"]), detail["msg"])) for detail in details)


def fill_prompt(config: PromptConfig, row: JsonMapping) -> list[JsonObject]:
    """Return the messages for one row: the system message, if any, and the user message.

    Raises:
        KeyError: the template names a field that the row lacks; lists the row's fields.
        InputError: the template asks of a field what its value cannot give, or is no template.

    """
    texts = [("system", config.system), ("user", config.user)]
    return [{"role": role, "content": _filled(role, text, row)} for role, text in texts if text is not None]


def _filled(role: str, template: str, row: JsonMapping) -> str:
    try:
        return template.format_map(row)
    except KeyError as error:
        raise KeyError(f"the {role} template names {error}, the row has {sorted(row)}") from None
    except (AttributeError, TypeError, ValueError, IndexError, OverflowError, MemoryError) as error:
        shown = f"{template[:_SHOWN]!r}{'…' if len(template) > _SHOWN else ''}"
        said = str(error) or type(error).__name__
        raise InputError(
            f"the {role} template {shown} cannot be filled: {said}. Literal braces are {{{{ and }}}}"
        ) from None


def apply_prompt_to_row(row: JsonMapping, config: PromptConfig) -> JsonObject:
    """Return a copy of `row` whose `responses_create_params.input` is the filled template."""
    block = row.get(RESPONSES_CREATE_PARAMS_KEY)
    params: JsonObject = dict(block) if isinstance(block, dict) else {}
    params["input"] = fill_prompt(config, row)
    return dict(row) | {RESPONSES_CREATE_PARAMS_KEY: params}


def has_own_prompt(row: JsonMapping) -> bool:
    """Whether a row brings its prompt along; an episode task does."""
    if is_materialized(row):
        return True
    block = row.get(RESPONSES_CREATE_PARAMS_KEY)
    return isinstance(block, dict) and bool(block.get("input"))


def validate_prompt_compatibility(rows: Iterable[SourceRow]) -> None:
    """Refuse rows that bring their own prompt.

    Raises:
        InputError: tells of such rows: the first in words, the rest counted.

    """
    refused = _Refused()
    for source in rows:
        if has_own_prompt(source.row):
            refused.add(source)
    refused.finish()


def fill_prompts(config: PromptConfig, rows: Iterable[SourceRow]) -> Iterator[SourceRow]:
    """Yield `rows` with the template filled in; identity stays that of the unfilled row.

    Raises:
        InputError: rows that bring their own prompt, told at the end; or a field that a row lacks.

    """
    refused = _Refused()
    for source in rows:
        if has_own_prompt(source.row):
            refused.add(source)
            continue
        try:
            yield replace(source, row=apply_prompt_to_row(source.row, config))
        except (KeyError, InputError) as error:
            raise InputError(f"{source.place}: {error.args[0]}") from None
    refused.finish()


class _Refused(Struct):
    """Rows that bring their own prompt: the first places, and how many there are."""

    places: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, source: SourceRow) -> None:
        self.count += 1
        if self.count <= _LISTED:
            self.places.append(source.place)

    def finish(self) -> None:
        more = f" and {self.count - _LISTED} more" if self.count > _LISTED else ""
        if self.count:
            raise InputError(
                "a prompt template is set, but these rows have an `input` of their own or are episode tasks: "
                f"{', '.join(self.places)}{more}"
            )
