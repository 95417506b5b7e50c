"""What planned rows show of a batch: for each agent its tasks, their fingerprint, the shape of the repeats, the seeds.

Rules:
* A fingerprint is of what a task says: routing, repeats, seeds, attempts and skills do not change it, nor does the
  order of tasks or of keys.
* Rows stream through; what is kept is one digest and two numbers for each task.

Source: collection.md §1.9.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rollbook.config.batch_manifest import ObservedBatchMember
from rollbook.plan.targets import name_in
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.records.json_values import JsonMapping
from rollbook.records.keys import AGENT_REF_KEY, NG_ENVIRONMENT_SERVER_KEY, RESPONSES_CREATE_PARAMS_KEY
from rollbook.records.task_content import content_digest, without_seed


def observed_members(rows: Iterable[JsonMapping]) -> tuple[ObservedBatchMember, ...]:
    """Return what materialized rows show, one member for each agent, by name."""
    members: dict[str, _Facts] = {}
    for row in rows:
        agent = name_in(row.get(AGENT_REF_KEY)) or str(row.get(NG_ENVIRONMENT_SERVER_KEY))
        members.setdefault(agent, _Facts()).add(row)
    return tuple(facts.observed(agent) for agent, facts in sorted(members.items()))


@dataclass(slots=True)
class _Facts:
    """One agent's rows, as they pass."""

    contents: set[tuple[object, bytes]] = field(default_factory=set)
    repeats: Counter[object] = field(default_factory=Counter)
    seeds: dict[object, object] = field(default_factory=dict)
    follow: bool = True
    vary: bool = False

    def add(self, row: JsonMapping) -> None:
        task, rollout, seed = row.get(TASK_INDEX_KEY_NAME), row.get(ROLLOUT_INDEX_KEY_NAME), _seed(row)
        self.contents.add((task, content_digest(row)))
        self.repeats[task] += 1
        self.follow = self.follow and seed == rollout and seed is not None
        self.vary = self.vary or self.seeds.setdefault(task, seed) != seed

    def observed(self, agent: str) -> ObservedBatchMember:
        fingerprint = hashlib.sha256(b"".join(sorted(digest for _, digest in self.contents))).hexdigest()
        shape = tuple(sorted(set(self.repeats.values())))
        return ObservedBatchMember(agent, len(self.repeats), fingerprint, shape, self.follow, self.vary)


def _seed(row: JsonMapping) -> object:
    params = row.get(RESPONSES_CREATE_PARAMS_KEY)
    return without_seed(params)[1] if isinstance(params, Mapping) else None
