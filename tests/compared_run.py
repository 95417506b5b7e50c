"""Small runs to be compared, written as a collector without a manifest leaves them."""

import json
import random


def task(number, rewards, *, agent="solver", params=None, states=None, **fields):
    """Return one task: what it says, and how each of its rollouts ended (a reward, or a state's name)."""
    said = {"responses_create_params": params or {"input": f"problem {number}"}} | fields
    return {"number": number, "ends": list(states or rewards), "said": said, "agent": agent}


def write(folder, tasks, *, plan=True, order=None, first=0, echo=True):
    """Write tasks as a run in `folder`, numbered anew in `order`; return its output."""
    folder.mkdir(parents=True, exist_ok=True)
    planned, results, failures = [], [], []
    for number, place in enumerate(order if order is not None else range(len(tasks)), start=first):
        of = tasks[place]
        for repeat, end in enumerate(of["ends"]):
            who = {"_ng_task_index": number, "_ng_rollout_index": repeat, "agent_ref": {"name": of["agent"]}}
            planned.append(of["said"] | who)
            echoed = {"responses_create_params": of["said"]["responses_create_params"]} if echo else {}
            row = ended(end, of["number"])
            if row is not None:
                (failures if "_ng_failure_class" in row else results).append(echoed | row | who)
    output = folder / "rollouts.jsonl"
    lines(output, results)
    lines(folder / "rollouts_failures.jsonl", failures)
    if plan:
        lines(folder / "rollouts_materialized_inputs.jsonl", planned)
    return output


def ended(end, number):
    """Return the row of a rollout that ended so, None of one that left none."""
    answer = {"output": [{"type": "message", "content": [{"type": "output_text", "text": f"answer {number} {end}"}]}]}
    match end:
        case "missing":
            return None
        case "masked":
            return {"reward": 1.0, "mask_sample": True, "response": answer}
        case "unscored":
            return {"response": answer}
        case str():
            return {"_ng_failure_class": end, "_ng_failure_message": "no"}
        case _:
            return {"reward": end, "response": answer}


def lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def drawn(tasks, repeats, gain, seed, difficulty=1, **fields):
    """Return tasks of which each has a chance of its own, the same for every run, and `gain` on top of it."""
    chances = random.Random(difficulty)  # noqa: S311  draws of a test, not secrets
    chance = random.Random(seed)  # noqa: S311  the same
    rates = [chances.betavariate(2, 2) for _ in range(tasks)]
    return [
        task(number, [float(chance.random() < rate + gain) for _ in range(repeats)], **fields)
        for number, rate in enumerate(rates)
    ]
