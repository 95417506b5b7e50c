"""Which routes of an application are plain: a fixed path, at most one JSON body, a coroutine, FastAPI's defaults.

Rules:
* A route counts only when the router itself would choose it for its path.
* Whatever is not known to be plain is not plain: dependencies, parameters of other places, other reply classes,
  limits, threads and generators are left to FastAPI.

Source: servers.md §3.2.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Final, Protocol, Union, get_args, get_origin

from fastapi import FastAPI
from fastapi.datastructures import DefaultPlaceholder
from fastapi.params import Body, File, Form
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import SchemaSerializer
from starlette.routing import Match

_OTHER_PARTS: Final = (
    "path_params",
    "query_params",
    "header_params",
    "cookie_params",
    "dependencies",
    "websocket_param_name",
    "http_connection_param_name",
    "background_tasks_param_name",
    "security_scopes_param_name",
)
_DEFAULTS: Final[Mapping[str, object]] = {
    "status_code": None,
    "response_model_include": None,
    "response_model_exclude": None,
    "response_model_by_alias": True,
    "response_model_exclude_unset": False,
    "response_model_exclude_defaults": False,
    "response_model_exclude_none": False,
    "stream_item_field": None,
    "max_body_size": None,
    "_embed_body_fields": False,
}
_POST: Final = "POST"
_UNIONS: Final = (Union, UnionType)


class Field(Protocol):
    """What FastAPI knows of a body or of a reply."""

    def validate(
        self, value: Any, values: dict[str, Any] = ..., *, loc: tuple[int | str, ...] = ...
    ) -> tuple[Any, list[dict[str, Any]]]:
        """Return the value as its type, or what is wrong with it."""
        ...

    def serialize_json(self, value: Any) -> bytes:
        """Return a value of the type as JSON."""
        ...


@dataclass(frozen=True, slots=True)
class PlainRoute:
    """A handler and the names that it takes its arguments by; None where it takes no such argument."""

    route: APIRoute
    call: Callable[..., Awaitable[Any]]
    body: Field | None
    body_name: str
    request_name: str | None
    response_name: str | None
    reply: Field | None
    body_class: type[BaseModel] | None
    """The class that a body is read as, where FastAPI asks nothing else of it."""
    reply_writers: Mapping[type, SchemaSerializer]
    """What writes the own instances of the classes that are replies as they are; none where one is looked at again."""


def plain_routes(app: FastAPI) -> Mapping[str, PlainRoute]:
    """Return the plain routes of `app` that answer a POST, by path."""
    if getattr(app, "max_body_size", None) is not None or app.root_path:
        return {}
    routes = [route for route in app.router.routes if type(route) is APIRoute and _is_plain(route)]
    return {route.path: _plain(route) for route in routes if _is_chosen(app, route)}


def _is_chosen(app: FastAPI, route: APIRoute) -> bool:
    scope = {"type": "http", "method": _POST, "path": route.path, "root_path": "", "headers": []}
    return next((one for one in app.router.routes if one.matches(dict(scope))[0] is Match.FULL), None) is route


def _is_plain(route: APIRoute) -> bool:
    dependant = route.dependant
    bodies = [field.field_info for field in dependant.body_params]
    return (
        route.methods == {_POST}
        and "{" not in route.path
        and len(bodies) <= 1
        and not any(isinstance(body, (Form, File)) for body in bodies)
        and not any(getattr(dependant, part, True) for part in _OTHER_PARTS)
        and all(getattr(route, name, ...) == default for name, default in _DEFAULTS.items())
        and isinstance(route.response_class, DefaultPlaceholder)
        and not route.dependencies
        and inspect.iscoroutinefunction(route.endpoint)
    )


def _plain(route: APIRoute) -> PlainRoute:
    dependant = route.dependant
    body = dependant.body_params[0] if dependant.body_params else None
    return PlainRoute(
        route,
        route.endpoint,
        body,
        body.name if body else "",
        dependant.request_param_name,
        dependant.response_param_name,
        route.response_field,
        None if body is None else _nothing_but_a_model(body.field_info),
        {kind: kind.__pydantic_serializer__ for kind in _taken_as_they_are(route.response_model)},
    )


def _nothing_but_a_model(info: FieldInfo) -> type[BaseModel] | None:
    """Return the class of a body that is a model, without a default and without limits of its own."""
    kind = info.annotation
    if not isinstance(kind, type) or not issubclass(kind, BaseModel) or get_origin(kind) is not None:
        return None
    return kind if type(info) is Body and info.is_required() and not info.metadata else None


def _taken_as_they_are(kind: object) -> list[type[BaseModel]]:
    """Return the classes that a reply may be of, if pydantic looks at no instance of any again."""
    kinds = get_args(kind) if get_origin(kind) in _UNIONS else (kind,)
    models = [one for one in kinds if isinstance(one, type) and issubclass(one, BaseModel) and _is_taken_as_it_is(one)]
    return models if len(models) == len(kinds) else []


def _is_taken_as_it_is(kind: type[BaseModel]) -> bool:
    """Whether an instance of this class is a reply as it is: no validators around the model, no JSON of its own."""
    if any(setting.startswith("ser_json_") for setting in kind.model_config):
        return False  # the route's writer knows nothing of them where it stands around the model's
    schema: Mapping[str, Any] = kind.__pydantic_core_schema__
    if schema.get("type") == "definitions":
        named = {one.get("ref"): one for one in schema["definitions"]}
        schema = schema["schema"]
        schema = named[schema["schema_ref"]] if schema.get("type") == "definition-ref" else schema
    looks_again = "revalidate_instances" in {*schema, *schema.get("config", {})}
    return schema.get("type") == "model" and schema.get("cls") is kind and not looks_again
