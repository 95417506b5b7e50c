"""What is running: the instance records of a head server, and what a probe of each finds.

Rules:
* A record's status is unknown until somebody probes; any HTTP answer is a success.
* A head server that does not answer is no error here: nothing is running.

Source: servers.md §2.1, §2.2.
"""

import asyncio
import time
from dataclasses import asdict, dataclass, replace
from typing import Final

from aiohttp import ClientError, ClientTimeout

from rollbook.config.types import BaseServerConfig
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.servers.client import ServerStatus, probe
from rollbook.servers.http.http_client import get_response_json, raise_for_status, request

_HEAD_SECONDS: Final = 5.0
_PROBE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class InstanceStatus:
    """One server instance. `start_time` is in seconds since the epoch; `uptime_seconds` is None before a probe."""

    config_path: str
    dir_path: str
    entrypoint: str
    host: str
    name: str
    pid: int | None
    port: int
    process_name: str
    server_type: str
    start_time: float
    url: str
    status: ServerStatus = ServerStatus.UNKNOWN_ERROR
    uptime_seconds: float | None = None

    @property
    def healthy(self) -> bool:
        """Whether it answered."""
        return self.status is ServerStatus.SUCCESS

    def as_json(self) -> JsonObject:
        """Return the record as a head server gives it, keys in order."""
        return dict(sorted(asdict(self).items()))


def instance_status(record: JsonMapping) -> InstanceStatus:
    """Return the value of one record of `/server_instances`."""
    pid = record.get("pid")
    return InstanceStatus(
        config_path=str(record["config_path"]),
        dir_path=str(record.get("dir_path", "")),
        entrypoint=str(record.get("entrypoint", "")),
        host=str(record["host"]),
        name=str(record["name"]),
        pid=pid if isinstance(pid, int) else None,
        port=int(str(record["port"])),
        process_name=str(record.get("process_name", record["config_path"])),
        server_type=str(record["server_type"]),
        start_time=float(str(record.get("start_time") or 0.0)),
        url=str(record["url"]),
    )


def instance_statuses(found: object) -> tuple[InstanceStatus, ...]:
    """Return the values of a whole reply of `/server_instances`.

    Raises:
        ValueError, KeyError: it is no list of instance records.

    """
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise ValueError("the instances are no list of records")
    return tuple(map(instance_status, found))


async def probe_status(head: BaseServerConfig) -> tuple[InstanceStatus, ...] | None:
    """Return every instance behind `head`, probed; None when no head server answers there."""
    url = f"http://{head.host}:{head.port}/server_instances"
    try:
        reply = await request("GET", url, _connect_grace=0.0, timeout=ClientTimeout(total=_HEAD_SECONDS))
        await raise_for_status(reply)
        known = instance_statuses(await get_response_json(reply))
    except (ClientError, TimeoutError, ValueError, KeyError, TypeError):
        return None
    return tuple(await asyncio.gather(*(probed(instance) for instance in known)))


async def probed(instance: InstanceStatus) -> InstanceStatus:
    """Return `instance` with what a probe of its address finds."""
    status = await probe(instance.url, _PROBE_SECONDS)
    uptime = time.time() - instance.start_time if status is ServerStatus.SUCCESS else None
    return replace(instance, status=status, uptime_seconds=uptime)
