"""Rows of a direct call → rows that say who runs them, by a name of their own or by the deployment's configuration.

Rules:
* An episode task goes by its server: the one that its row or the call names, else the route of its taskset. An agent or
  a task source that it names besides is checked, and never leads it elsewhere.
* A flat row that names nobody goes to the configuration's only agent, where there is one.
* One error lists every row that leads nowhere.

Source: collection.md §2.8 to §2.10; servers.md §8.3.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from rollbook.errors import InputError
from rollbook.plan.directory import Directory
from rollbook.plan.environment_routes import EnvironmentRoutes
from rollbook.plan.targets import name_in
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import AGENT_REF_KEY, NG_ENVIRONMENT_SERVER_KEY, TASK_SOURCE_KEY
from rollbook.records.source import is_materialized

_A_SERVER = "name a server with `_ng_environment_server` in the row or with environment_server_name"
_HOW_TO_NAME = f"Name an agent with `agent_ref` or `task_source` in the row, or {_A_SERVER}"
_HOW_TO_ROUTE = f"Route it with `environment_server_routes` in the deployment's configuration, or {_A_SERVER}"


def addressed(rows: Iterable[JsonObject], directory: Directory, server: str | None) -> Iterator[JsonObject]:
    """Yield `rows` with who runs them; `server` is where all of them go.

    Raises:
        InputError: rows that lead nowhere, after the last row; or a route that cannot be read.

    """
    faults: list[str] = []
    nowhere: defaultdict[str | None, list[str]] = defaultdict(list)
    only_agent = cache(lambda: directory.only_agent)
    routes = EnvironmentRoutes(directory.config)
    for number, row in enumerate(rows):
        if server is not None:
            yield row | {NG_ENVIRONMENT_SERVER_KEY: server}
        elif _says_who_runs_it(row):
            yield row
        else:
            try:
                stand_in = _stand_in(row, routes, only_agent)
            except InputError as error:
                faults.append(f"row {number}: {error}")
                continue
            if stand_in is not None:
                yield row | stand_in
            else:
                nowhere[_taskset_of(row)].append(f"row {number}")
    faults += (_led_nowhere(taskset, places) for taskset, places in nowhere.items())
    if faults:
        raise InputError("\n".join(faults))


def _says_who_runs_it(row: JsonMapping) -> bool:
    if row.get(NG_ENVIRONMENT_SERVER_KEY):
        return True
    return not is_materialized(row) and bool(name_in(row.get(AGENT_REF_KEY)) or row.get(TASK_SOURCE_KEY))


def _stand_in(row: JsonMapping, routes: Mapping[str, str], only_agent: Callable[[], str | None]) -> JsonObject | None:
    """Return who runs a row that does not say: the route of its taskset, or the configuration's only agent."""
    if not is_materialized(row):
        return {AGENT_REF_KEY: {"name": name}} if (name := only_agent()) else None
    taskset = _taskset_of(row)
    found = routes.get(taskset) if taskset is not None else None
    return {NG_ENVIRONMENT_SERVER_KEY: found} if found is not None else None


def _taskset_of(row: JsonMapping) -> str | None:
    """Return the taskset of an episode task, None of a flat row."""
    task_id = row.get("task_id")
    return str(task_id.get("taskset")) if is_materialized(row) and isinstance(task_id, Mapping) else None


def _led_nowhere(taskset: str | None, places: list[str]) -> str:
    if taskset is None:
        return f"nobody runs {', '.join(places)}. {_HOW_TO_NAME}"
    return f"no environment server for taskset {taskset!r}: {', '.join(places)}. {_HOW_TO_ROUTE}"
