"""A planned row and a saved answer → what `/verify` is sent, and what every record of it carries.

Rules:
* The row says what was asked, the answer what came back: of the saved row only the answer is taken, never its reward
  and never what it says of a failure.
* A materialized task is flattened; two values for one key are refused, none of them wins.

Source: collection.md §9.1.
"""

from dataclasses import dataclass
from typing import Final

from rollbook.errors import InputError
from rollbook.plan.targets import name_in
from rollbook.records.codec import encode, stamps_of
from rollbook.records.identity import ATTEMPT_INDEX_KEY_NAME, RolloutKey
from rollbook.records.json_values import JsonMapping, JsonObject, mapping_or_empty
from rollbook.records.keys import (
    AGENT_REF_KEY,
    DELIVERABLES_KEY,
    NG_ENVIRONMENT_SERVER_KEY,
    NG_POLICY_MODEL_SERVER_KEY,
    NG_RESULT_TYPE_KEY,
    RESPONSE_KEY,
)
from rollbook.records.source import is_materialized
from rollbook.records.task import Rollout

REFERENCES_KEY: Final = "reference_ids"
_OF_THE_ANSWER: Final = (RESPONSE_KEY, DELIVERABLES_KEY, REFERENCES_KEY)
_WHO_ANSWERED: Final = (
    AGENT_REF_KEY,
    NG_ENVIRONMENT_SERVER_KEY,
    NG_RESULT_TYPE_KEY,
    NG_POLICY_MODEL_SERVER_KEY,
)
_TASK_INPUT: Final = "task_input"
_TASK_DATA: Final = "task_data"


def verify_payload(row: JsonMapping, answer: JsonMapping) -> JsonObject:
    """Return what a resources server is sent to judge `answer`, a saved row, to the planned `row`.

    Raises:
        InputError: the row is a materialized task that says one key twice, in two ways.

    """
    kept = {key: answer[key] for key in _OF_THE_ANSWER if answer.get(key) is not None}
    return flattened(row) | kept


def flattened(row: JsonMapping) -> JsonObject:
    """Return a materialized task as a flat row: its own keys, then those of its data, then the rest of its input.

    Raises:
        InputError: a key that has two values.

    """
    if not is_materialized(row):
        return dict(row)
    task_input = mapping_or_empty(row.get(_TASK_INPUT))
    parts = (
        {key: value for key, value in row.items() if key != _TASK_INPUT},
        mapping_or_empty(task_input.get(_TASK_DATA)),
        {key: value for key, value in task_input.items() if key != _TASK_DATA},
    )
    flat: JsonObject = {}
    for part in parts:
        twice = [key for key, value in part.items() if flat.setdefault(key, value) != value]
        if twice:
            raise InputError(
                f"the materialized task {row.get('task_id')} has two values for `{twice[0]}`; keep one of them"
            )
    return flat


@dataclass(frozen=True, slots=True)
class Judged:
    """One answer that is to be judged: the planned row, the saved row that keeps the answer, and what records carry."""

    key: RolloutKey
    row: JsonMapping
    answer: JsonMapping
    links: JsonMapping
    attempt: int = 0

    @property
    def agent(self) -> str | None:
        """Whose answer it is."""
        return name_in(self.row.get(AGENT_REF_KEY)) or name_in(self.answer.get(AGENT_REF_KEY))

    def sent_to(self, server: str) -> Rollout:
        """Return what dispatch carries to `server`.

        Raises:
            InputError: the row says one key twice, in two ways.

        """
        named = {name: self.answer[name] for name in _WHO_ANSWERED if self.answer.get(name) is not None}
        stamps = named | stamps_of(self.row) | dict(self.links)
        if self.attempt:
            stamps[ATTEMPT_INDEX_KEY_NAME] = self.attempt
        line, stamped = encode(verify_payload(self.row, self.answer)), encode(stamps)[1:-1]
        return Rollout(self.key, line, server, self.agent, self.attempt, stamped=stamped)
