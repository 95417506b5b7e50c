"""The typed record of one failure, as collectors and owners of a run save it beside a row's own keys.

Rules:
* The version covers the whole record, nested parts included: a record of an unknown version or with an unknown field is
  refused and named, never read in part and never taken for a result.
* No reward, no response and no diagnostics are in it, and nothing in it says that an attempt may be made again.
* A record names an attempt of a run: where either has no name there is none.

Source: collection.md §4.3, §21.1 (5).
"""

from collections.abc import Mapping
from typing import Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from rollbook.errors import LedgerError
from rollbook.records.episode_models import EpisodeFailure, EpisodeId
from rollbook.records.failure_kinds import ENVIRONMENT_SERVER_FAILURE_CLASS, Delivery
from rollbook.records.identity import ATTEMPT_INDEX_KEY_NAME, ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import ROLLOUT_FAILURE_KEY
from rollbook.records.outcome import Failed

_VERSION: Final = 1
_VERSION_FIELD: Final = "schema_version"
_TEXT_KEPT: Final = 2000
_STATUSES: Final = range(100, 600)
_UNKNOWN_FIELD: Final = "extra_forbidden"

Source = Literal["environment", "collector"]


class IncompatibleFailureRecordError(LedgerError):
    """A saved failure record that this version does not read; names the version or the fields."""


class RolloutFailure(BaseModel):
    """One observed failure of one attempt of a run.

    `source` is who reported it; `delivery` is what the collector knows about whether the environment server received
    the request. Fields that say nothing are left out of JSON.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    schema_version: Literal[1] = 1
    episode_id: EpisodeId
    run_id: str = Field(min_length=1)
    source: Source
    delivery: Literal["not_sent", "possibly_delivered", "delivered"]
    failure: EpisodeFailure
    http_status: int | None = Field(default=None, ge=100, le=599)
    exception_type: str | None = Field(default=None, max_length=2000)

    @model_validator(mode="after")
    def validate_delivery(self) -> Self:
        """Require established delivery for failures reported by the environment."""
        if self.source == "environment" and self.delivery != "delivered":
            raise ValueError(f"source 'environment' requires delivery 'delivered', not {self.delivery!r}")
        return self

    @model_serializer(mode="wrap")
    def _without_what_says_nothing(self, handler: SerializerFunctionWrapHandler) -> JsonObject:
        fields = _said(handler(self))
        failure = fields.get("failure")
        return fields | {"failure": _said(failure)} if isinstance(failure, Mapping) else fields


RolloutFailureRecord = RolloutFailure


def typed_failure(failed: Failed, *, run_id: str | None, rollout_id: str, attempt: int) -> RolloutFailure | None:
    """Return the typed record of a failure, or None when the run or the rollout has no name that it could carry."""
    try:
        return RolloutFailure(
            episode_id=EpisodeId(rollout_id=rollout_id, attempt=attempt),
            run_id=run_id or "",
            source=_source(failed),
            delivery=failed.delivery.value,
            failure=EpisodeFailure(
                failure_reason=_kept(failed.message),
                terminal=failed.terminal,
                failure_kind=_kept(failed.kind) if failed.kind is not None else None,
                stage=failed.stage,
            ),
            http_status=failed.http_status if failed.http_status in _STATUSES else None,
            exception_type=_kept(failed.exception_type) if failed.exception_type is not None else None,
        )
    except ValidationError:
        return None


def rollout_failure_of(row: JsonMapping) -> RolloutFailure | None:
    """Return the typed record that a saved row holds, or None when it holds none.

    Raises:
        IncompatibleFailureRecordError: it is of a version that is not read here, or no such record at all.

    """
    saved = row.get(ROLLOUT_FAILURE_KEY)
    if saved is None:
        return None
    if not isinstance(saved, Mapping):
        raise _refused(row, f"it is no object but {type(saved).__name__}")
    version = saved.get(_VERSION_FIELD, _VERSION)
    if type(version) is not int or version != _VERSION:
        raise _refused(row, f"{_VERSION_FIELD} {version!r:.40} is not known; version {_VERSION} is")
    try:
        return RolloutFailure.model_validate(saved)
    except ValidationError as error:
        raise _refused(row, "; ".join(_faults(error))) from None


def _source(failed: Failed) -> Source:
    """Return who says so: the environment itself, or the collector, of a reply that it could not take."""
    reported = failed.failure_class == ENVIRONMENT_SERVER_FAILURE_CLASS and failed.exception_type is None
    return "environment" if reported and failed.delivery is Delivery.DELIVERED else "collector"


def _kept(text: str) -> str:
    """Return the first part of `text`, without the lone surrogates that no JSON can carry."""
    return text[:_TEXT_KEPT].encode(errors="replace").decode()


def _said(fields: JsonMapping) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


def _faults(error: ValidationError) -> list[str]:
    """Say what is wrong by field, without the values, which may be anybody's."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    return [_fault(".".join(map(str, one["loc"])), one["type"], one["msg"]) for one in found]


def _fault(field: str, kind: str, message: str) -> str:
    return f"unknown field {field!r}" if kind == _UNKNOWN_FIELD else f"{field or 'the record'}: {message}"


def _refused(row: JsonMapping, fault: str) -> IncompatibleFailureRecordError:
    key = f"{row.get(TASK_INDEX_KEY_NAME, '?')}-{row.get(ROLLOUT_INDEX_KEY_NAME, '?')}"
    return IncompatibleFailureRecordError(
        f"rollout {key}, attempt {row.get(ATTEMPT_INDEX_KEY_NAME, 0)}: its `{ROLLOUT_FAILURE_KEY}` cannot be read: "
        f"{fault}. The row was left as it is; read it with the version that wrote it"
    )
