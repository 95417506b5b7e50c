"""What a run whose tasks' repeats are scored together needs, checked before anything is sent.

Rules:
* The largest task must fit into the lanes: its scorer waits for all of its repeats, each of which holds a lane.
* Repeats that are sent apart never meet, so that they are not interleaved.

Source: case RC-89.
"""

from rollbook.errors import InputError


def refuse_interleaved(*, interleave: bool) -> None:
    """Refuse an order that sends the repeats of a task apart.

    Raises:
        InputError: names both options.

    """
    if interleave:
        raise InputError(
            "group_scored and interleave_repeats exclude each other: repeats that are scored together are sent "
            "together; leave interleave_repeats out"
        )


def refuse_too_few_lanes(largest: tuple[int, int] | None, lanes: int) -> None:
    """Refuse fewer lanes than `largest`, a task and how many rollouts it has, needs.

    Raises:
        InputError: names the task, its rollouts and the option.

    """
    if largest is not None and largest[1] > lanes:
        task, size = largest
        raise InputError(
            f"task {task} has {size} rollouts that are scored together (group_scored), and {lanes} may be in flight: "
            f"its scorer would wait for ever. Give --concurrency {size} or more (num_samples_in_parallel, "
            "max_resident_rollout_tasks)"
        )
