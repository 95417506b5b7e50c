"""What the scripted server answers: a pure function of who asks.

Rules:
* The reward depends on task and rollout alone, so every way to the end of a run has one right mean.
* A fault depends on seed, task, rollout and attempt; from attempt `FAULTY_ATTEMPTS` on there is none, so that every
  rollout can be scored before its cap.
"""

import hashlib
from enum import StrEnum
from typing import Final

FAULTY_ATTEMPTS: Final = 3
FAULT_SHARE: Final = 0.4
LONGEST_DELAY: Final = 0.03
_LONG_ANSWERS: Final = 0.1
_LONG: Final = 120_000


class Fault(StrEnum):
    """How an exchange goes wrong."""

    NONE = "none"
    UNAVAILABLE = "503"
    TOO_MANY = "429"
    ERROR = "500"
    UNREAD = "closed before an answer was thought of"
    DROPPED = "closed instead of the answer"
    HALF = "closed in the middle of the answer"
    NO_JSON = "an answer that is no JSON"
    REFUSED = "interrupted at admission"


FAULTS: Final = tuple(fault for fault in Fault if fault is not Fault.NONE)


def _share(*parts: object) -> float:
    """Return a number in [0, 1) that `parts` decide."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=7).digest()
    return int.from_bytes(digest) / (1 << 56)


def reward_of(task: int, rollout: int) -> float:
    """Return the reward of a rollout: a quarter between 0 and 1, exact in binary."""
    return int(_share("reward", task, rollout) * 5) / 4


def fault_of(seed: int, task: int, rollout: int, attempt: int) -> Fault:
    """Return what goes wrong with an attempt."""
    if attempt >= FAULTY_ATTEMPTS or _share("faulty", seed, task, rollout, attempt) >= FAULT_SHARE:
        return Fault.NONE
    return FAULTS[int(_share("fault", seed, task, rollout, attempt) * len(FAULTS))]


def delay_of(seed: int, task: int, rollout: int, attempt: int) -> float:
    """Return for how many seconds an answer is thought about."""
    return _share("delay", seed, task, rollout, attempt) * LONGEST_DELAY


def text_of(task: int, rollout: int) -> str:
    """Return a rollout's answer; some are as long as many pages, so that a write may be cut inside."""
    size = _LONG if _share("long", task, rollout) < _LONG_ANSWERS else int(_share("size", task, rollout) * 3000)
    return "x" * size


def answer_of(row: dict) -> dict:
    """Return the result of a row."""
    task, rollout = row["_ng_task_index"], row["_ng_rollout_index"]
    text = {"type": "output_text", "text": text_of(task, rollout), "annotations": []}
    return row | {"reward": reward_of(task, rollout), "response": {"output": [{"type": "message", "content": [text]}]}}


def refusal_of(row: dict) -> dict:
    """Return the reply of an agent that never admitted the row."""
    return row | {
        "_ng_no_persist": True,
        "_ng_failure_class": "kill_shaped",
        "_ng_failure_stage": "admission",
        "_ng_failure_message": "no room",
    }


def mean_reward(tasks: int, repeats: int) -> float:
    """Return the mean over a whole plan."""
    rewards = [reward_of(task, rollout) for task in range(tasks) for rollout in range(repeats)]
    return sum(rewards) / len(rewards)
