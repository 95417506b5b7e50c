"""A trainer's loop over rollouts: steps, groups of repeats, a shard on disk for each step, and a death at any moment.

    python examples/trainer_loop.py out                           # an environment and a simulated model of its own
    python examples/trainer_loop.py out --head 127.0.0.1:11000    # the servers of `gym env start`

Each step takes a few tasks, several rollouts of each, and hands the groups that are complete to `train_on`:

* `--policy wait`: every group, once all of its rollouts were scored; those that failed are sent once more;
* `--policy deadline --seconds 60`: the groups that are whole after a minute; the other rollouts are cancelled;
* `--policy n_of_m --enough 3`: every group, with the first three of its rollouts; the stragglers are cancelled.

Stop it or kill it, and start it again with the same words: steps that were trained on are not run again, the step that
was broken gets what its shard lacks, by the same policy, and the loop goes on. docs/training.md tells how.
"""

import argparse
import asyncio
import json
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rollbook

Row = dict[str, Any]
SERVERS = (
    "resources_servers/mcqa/configs/mcqa.yaml",
    "responses_api_models/simulated_model/configs/simulated_model.yaml",
)
HELPER = rollbook.RolloutCollectionHelper(reuse_server_client=True)


@dataclass(frozen=True)
class Loop:
    """What is trained on. `enough` rollouts make a group of `repeats`; after `seconds`, a step makes do with less."""

    out: Path
    questions: Sequence[Row]
    steps: int
    tasks: int
    repeats: int
    at_once: int
    policy: str
    enough: int
    seconds: float | None

    def shard(self, step: int) -> Path:
        """Return where the results of a step lie."""
        return self.out / f"rollouts-step-{step}.jsonl"

    def rows(self, step: int) -> list[Row]:
        """Return the rollouts of a step, one row each; tasks are numbered through all steps."""
        numbers = range(step * self.tasks, (step + 1) * self.tasks)
        tasks = [self.questions[n % len(self.questions)] | {rollbook.TASK_INDEX_KEY_NAME: n} for n in numbers]
        config = rollbook.get_global_config_dict()
        return HELPER.preprocess_examples(tasks, num_repeats=self.repeats, global_config_dict=config)

    @property
    def leaves_stragglers(self) -> bool:
        """Whether a group may be whole before all of its rollouts ended."""
        return self.enough < self.repeats

    @property
    def trained_on(self) -> int:
        """How many steps were trained on; a trainer finds it beside its weights."""
        checkpoint = self.out / "checkpoint.json"
        return int(json.loads(checkpoint.read_bytes())["steps"]) if checkpoint.exists() else 0

    def checkpoint(self, steps: int) -> None:
        """Note that so many steps were trained on."""
        (self.out / "checkpoint.new").write_text(json.dumps({"steps": steps}))
        (self.out / "checkpoint.new").replace(self.out / "checkpoint.json")


@dataclass
class Groups:
    """The rewards of a step's rollouts, by task."""

    loop: Loop
    rewards: dict[int, list[float]] = field(default_factory=dict)

    def add(self, row: Row, result: object) -> None:
        """Take a result; one that failed, or whose reward is no measurement, belongs to no group."""
        rewards = self.rewards.setdefault(row[rollbook.TASK_INDEX_KEY_NAME], [])
        if not isinstance(result, dict) or rollbook.NG_FAILURE_CLASS_KEY in result or result.get("mask_sample"):
            return
        if len(rewards) < self.loop.enough and "reward" in result:
            rewards.append(float(result["reward"]))

    @property
    def complete(self) -> list[list[float]]:
        """The groups that may be trained on."""
        return [rewards for rewards in self.rewards.values() if len(rewards) == self.loop.enough]

    @property
    def are_all(self) -> bool:
        """Whether there is nothing to wait for."""
        return len(self.complete) == self.loop.tasks


async def collected(loop: Loop, step: int, head: rollbook.BaseServerConfig) -> Groups:
    """Send a step's rollouts, at most so many at once, until its groups are complete or its time is up."""
    groups = Groups(loop)
    completions = HELPER.run_examples(
        loop.rows(step),
        head,
        route_failures_to_sidecar=True,
        max_resident_tasks=loop.at_once,
        retry_requests=False,
        record_output_dir=loop.out,
        record_shard=f"step-{step}",
    )
    try:
        async with asyncio.timeout(loop.seconds):
            for completion in completions:
                groups.add(*await completion)
                if groups.are_all:
                    break
    except TimeoutError:
        pass
    finally:  # a stop comes this way, too: what has ended is taken, the rest is cancelled, the shard is whole
        for settled in await completions.aclose_and_drain():
            with suppress(asyncio.CancelledError):
                groups.add(*await settled)
    return groups


def saved(loop: Loop, step: int) -> Groups:
    """Return the groups that the shard of a step holds; a line counts once it is whole."""
    groups, shard = Groups(loop), loop.shard(step)
    for line in shard.read_bytes().splitlines(keepends=True) if shard.exists() else ():
        if line.endswith(b"\n"):
            result = json.loads(line)
            groups.add(result, result)
    return groups


async def completed(loop: Loop, step: int) -> Groups:
    """Send what the shard of a step lacks, and wait for it no longer than the policy does."""
    config = rollbook.RolloutCollectionConfig(
        input_jsonl_fpath=str(rollbook.materialized_path_for(loop.shard(step))),
        output_jsonl_fpath=str(loop.shard(step)),
        resume_from_cache=True,
        route_failures_to_sidecar=True,
        num_samples_in_parallel=loop.at_once,
        disable_aggregation=True,
    )
    sending = asyncio.create_task(HELPER.run_from_config(config))
    try:
        async with asyncio.timeout(loop.seconds):
            while not sending.done() and not (loop.leaves_stragglers and saved(loop, step).are_all):
                await asyncio.wait({sending}, timeout=0.2)
    except TimeoutError:
        pass
    finally:  # what runs is cancelled; where every rollout failed there is no result to return, and no group
        sending.cancel()
        with suppress(asyncio.CancelledError, rollbook.NothingProducedError):
            await sending
    return saved(loop, step)


def train_on(groups: Sequence[Sequence[float]]) -> float:
    """Stand in for an update, which compares each rollout with its group; return the mean reward."""
    return sum(sum(group) / len(group) for group in groups) / max(len(groups), 1)


async def run(loop: Loop, head: rollbook.BaseServerConfig) -> None:
    """Go through the steps that were not trained on, and tell of each in a line."""
    for step in range(loop.trained_on, loop.steps):
        broken = rollbook.manifest_path_for(loop.shard(step)).exists()
        groups = Groups(loop) if broken else await collected(loop, step, head)
        if broken or (loop.policy == "wait" and not groups.are_all):
            groups = await completed(loop, step)
        mean = train_on(groups.complete)
        loop.checkpoint(step + 1)
        how = "taken up where it had stopped" if broken else "run"
        print(f"step {step} {how}: {len(groups.complete)} of {loop.tasks} groups, mean reward {mean:.3f}", flush=True)


@asynccontextmanager
async def served(head: str | None, answers: Path) -> AsyncIterator[rollbook.BaseServerConfig]:
    """Give the head of running servers, or serve an environment and a simulated model in this process."""
    if head is not None:
        host, _, port = head.rpartition(":")
        async with rollbook.RemoteDeployment(rollbook.BaseServerConfig(host=host, port=int(port))) as remote:
            rollbook.set_global_config_dict(remote.global_config_dict)
            yield remote.head_server_config
            return
    initial = {"config_paths": list(SERVERS)}
    known = [f"++policy_model.responses_api_models.simulated_model.answers_fpath={answers}"]
    parser = rollbook.GlobalConfigDictParserConfig(
        initial_global_config_dict=initial, overrides=known, private_head=True
    )
    async with rollbook.EmbeddedDeployment(rollbook.GlobalConfigDictParser().parse(parser)) as embedded:
        yield embedded.head_server_config


async def main(said_words: Sequence[str] | None = None) -> None:
    """Read the words, and go."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("out", type=Path, help="the folder of shards and checkpoint")
    words.add_argument("--head", help="HOST:PORT of a running head server; without it, servers of its own")
    words.add_argument("--input", default="resources_servers/mcqa/data/example.jsonl", help="rows, as JSON lines")
    for name, default in (("steps", 3), ("tasks", 4), ("repeats", 4), ("at-once", 8)):
        words.add_argument(f"--{name}", type=int, default=default)
    words.add_argument("--policy", choices=("wait", "deadline", "n_of_m"), default="wait")
    words.add_argument("--enough", type=int, help="how many rollouts make a group; all, unless the policy is n_of_m")
    words.add_argument("--seconds", type=float, help="how long a step may take; the policy deadline needs it")
    said = vars(words.parse_args(said_words))
    if said["policy"] == "deadline" and said["seconds"] is None:
        words.error("--policy deadline needs --seconds: how long a step may take")
    if said["enough"] is not None and (said["policy"] != "n_of_m" or not 1 <= said["enough"] <= said["repeats"]):
        words.error(f"--enough is of --policy n_of_m, and from 1 to the {said['repeats']} of --repeats")
    head, rows = said.pop("head"), rollbook.resolve_read_path(said.pop("input")).resolve()
    said |= {"enough": said["enough"] or said["repeats"], "questions": list(map(json.loads, rows.open()))}
    said["out"].mkdir(parents=True, exist_ok=True)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)
    async with served(head, rows) as server:
        await run(Loop(**said), server)


if __name__ == "__main__":
    try:
        with suppress(asyncio.CancelledError, KeyboardInterrupt):
            asyncio.run(main())
    except rollbook.RollbookError as told:
        raise SystemExit(f"{told}") from None
