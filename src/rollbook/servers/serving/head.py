"""The head server: one address that tells clients the configuration, and people what is running.

Rules:
* The configuration is a JSON string that holds YAML, unmasked: head server and clients trust each other.
* It says "starting" until every server is up.

Source: servers.md §2.1.
"""

from collections.abc import Callable, Sequence

from fastapi import FastAPI
from omegaconf import DictConfig, OmegaConf
from starlette.responses import JSONResponse

from rollbook.servers.serving.status import InstanceStatus


def head_app(
    config: DictConfig, is_ready: Callable[[], bool], instances: Callable[[], Sequence[InstanceStatus]]
) -> FastAPI:
    """Return the head server's application."""
    app = FastAPI(title="head server")
    yaml_text = OmegaConf.to_yaml(config, resolve=True)

    async def alive() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def ready() -> JSONResponse:
        return JSONResponse({"status": "ok"}) if is_ready() else JSONResponse({"status": "starting"}, 503)

    async def global_config_dict_yaml() -> JSONResponse:
        return JSONResponse(yaml_text)

    async def server_instances() -> JSONResponse:
        return JSONResponse([instance.as_json() for instance in instances()])

    for path in ("/", "/livez"):
        app.get(path, include_in_schema=False)(alive)
    for path in ("/readyz", "/healthz", "/health"):
        app.get(path, include_in_schema=False)(ready)
    app.get("/global_config_dict_yaml")(global_config_dict_yaml)
    app.get("/server_instances")(server_instances)
    return app
