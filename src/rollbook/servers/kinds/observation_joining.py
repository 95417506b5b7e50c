"""An agent's observations and the captured model calls, brought together.

Rules:
* A reference is completed only when exactly one call fits it: its id, or its model server and response id.
* A call that no reference names belongs to the invocation whose id the client sent as its session; else to nobody.
* Whatever does not come out even is a gap. Ownership is never guessed.

Source: collection.md §8.3.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from rollbook.config.types import ModelServerRef
from rollbook.servers.kinds.observations import (
    AgentInvocation,
    AgentObservationBundle,
    ContextCompactionObservation,
    ModelCallRef,
    ObservationGap,
)

UNMATCHED: Final = "model_call_reference_unmatched"
AMBIGUOUS: Final = "model_call_reference_ambiguous"
CONFLICT: Final = "model_call_reference_conflict"
UNOWNED: Final = "model_call_ownership_unavailable"


@dataclass(frozen=True, slots=True)
class _Call:
    model_call_id: str | None
    model_ref: ModelServerRef | None
    response_id: str | None
    session: str | None

    def contradicts(self, reference: ModelCallRef) -> bool:
        """Whether the two name different models or responses."""
        return any(
            theirs is not None and ours is not None and theirs != ours
            for theirs, ours in (
                (reference.model_ref, self.model_ref),
                (reference.response_id, self.response_id),
            )
        )

    def answers(self, reference: ModelCallRef) -> bool:
        """Whether the model server and the response are those of the reference."""
        return reference.response_id == self.response_id and reference.model_ref == self.model_ref


def join_model_call_observations(
    observations: AgentObservationBundle, calls: Sequence[BaseModel | Mapping[str, Any]]
) -> AgentObservationBundle:
    """Return `observations` with references that name the captured calls, and gaps for those that name none.

    A call has `model_call_id` and, where known, `model_ref`, `response_id` and `client_session_id`.
    """
    joining = _Joining([_call(call) for call in calls], [])
    records = [joining.joined(record) for record in observations.records]
    records = list(joining.with_owned(records))
    gaps = {(gap.code, gap.invocation_id, gap.detail): gap for gap in [*observations.gaps, *joining.gaps]}
    return observations.model_copy(update={"records": records, "gaps": list(gaps.values())})


@dataclass(slots=True)
class _Joining:
    calls: list[_Call]
    gaps: list[ObservationGap]

    def joined(self, record: Any) -> Any:
        """Return a record whose references are completed, itself when it has none."""
        if not isinstance(record, (AgentInvocation, ContextCompactionObservation)):
            return record
        changed: dict[str, object] = {"model_calls": list(self._completed(record.invocation_id, record.model_calls))}
        if isinstance(record, ContextCompactionObservation) and record.before_model_call is not None:
            changed["before_model_call"] = next(self._completed(record.invocation_id, [record.before_model_call]))
        return record.model_copy(update=changed)

    def with_owned(self, records: Sequence[Any]) -> Iterator[Any]:
        """Give every call that nobody names to the invocation whose id was its session."""
        named = {reference.model_call_id for record in records for reference in _references(record)}
        invocations = {record.invocation_id for record in records if isinstance(record, AgentInvocation)}
        owned: dict[str, list[ModelCallRef]] = {}
        for call in self.calls:
            if call.model_call_id is None or call.model_call_id in named:
                continue
            if call.session in invocations:
                owned.setdefault(str(call.session), []).append(_reference_to(call))
            else:
                self.gaps.append(ObservationGap(code=UNOWNED, detail=call.model_call_id))
        for record in records:
            more = owned.get(record.invocation_id) if isinstance(record, AgentInvocation) else None
            yield record.model_copy(update={"model_calls": [*record.model_calls, *more]}) if more else record

    def _completed(self, invocation: str, references: Iterable[ModelCallRef]) -> Iterator[ModelCallRef]:
        for reference in references:
            code, found = self._found(reference)
            if code is not None:
                told = reference.model_call_id or reference.response_id
                self.gaps.append(ObservationGap(code=code, invocation_id=invocation, detail=told))
            yield reference if found is None else _reference_to(found, reference)

    def _found(self, reference: ModelCallRef) -> tuple[str | None, _Call | None]:
        by_id = reference.model_call_id is not None
        fitting = [
            call
            for call in self.calls
            if (call.model_call_id == reference.model_call_id if by_id else call.answers(reference))
        ]
        if len(fitting) != 1:
            return (AMBIGUOUS if fitting else UNMATCHED), None
        return (CONFLICT, None) if fitting[0].contradicts(reference) else (None, fitting[0])


def _references(record: Any) -> list[ModelCallRef]:
    return record.model_calls if isinstance(record, AgentInvocation) else []


def _reference_to(call: _Call, known: ModelCallRef | None = None) -> ModelCallRef:
    return ModelCallRef(
        model_call_id=call.model_call_id,
        model_ref=(known.model_ref if known else None) or call.model_ref,
        response_id=(known.response_id if known else None) or call.response_id,
    )


def _call(call: BaseModel | Mapping[str, Any]) -> _Call:
    fields = call.model_dump() if isinstance(call, BaseModel) else call
    reference = fields.get("model_ref")
    return _Call(
        fields.get("model_call_id"),
        None if reference is None else ModelServerRef.model_validate(reference),
        fields.get("response_id"),
        fields.get("client_session_id"),
    )
