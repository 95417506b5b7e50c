"""Sides of a comparison, made without files."""

from rollbook.compare.side import Said, Side


def side(*tasks, agent="a", label="run", has_plan=True):
    """Return a side of tasks, each a dictionary of `ends` (a reward, or a state's name) and what it says."""
    made = Side(label, has_plan=has_plan)
    for number, task in enumerate(tasks):
        for repeat, end in enumerate(task["ends"]):
            if isinstance(end, str):
                made.add_unscored(repeat, end)
            else:
                made.add_scored(repeat, end)
        made.end_unit(number, task.get("agent", agent))
        made.say(number, task.get("said", Said(number + 1, number + 1)))
    return made


def of(*ends, content=None, prompt=None, name=0, tags=0, **fields):
    """Return a task; without a content or a prompt it says what its place says."""
    said = {} if content is None and prompt is None else {"said": Said(content or 0, prompt or 0, name, tags)}
    return {"ends": ends} | said | fields
