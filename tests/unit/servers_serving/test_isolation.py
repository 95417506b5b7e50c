import asyncio
import os
import signal
import sys

import orjson
import pytest

from rollbook.config.instances import server_instances
from rollbook.errors import ConfigError, MissingPackageError, PortTakenError, ServerDiedError
from rollbook.records.exchange import SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.servers.http.waiting import until
from rollbook.servers.serving import isolation
from rollbook.servers.serving.embedded import EmbeddedDeployment
from rollbook.servers.serving.interpreters import interpreters
from rollbook.servers.serving.isolated_pythons import pythons_for
from rollbook.servers.serving.isolation import Isolation, component_in, is_isolated, isolation_of
from rollbook.servers.serving.process_group import ProcessGroup
from rollbook.servers.serving.processes import ProcessDeployment
from unit.servers_core.stand_ins import APP, configuration, listening_socket, write_component

ASKS = """
    import os
    from fastapi import FastAPI
    from rollbook import SimpleServer, BaseRunServerInstanceConfig, get_response_json


    class Asking(SimpleServer):
        config: BaseRunServerInstanceConfig

        def setup_webserver(self) -> FastAPI:
            app = FastAPI()
            self.setup_session_middleware(app)
            app.post("/run")(self.run)
            return app

        async def run(self) -> dict[str, object]:
            reply = await self.server_client.post("colours", "/run", json={})
            told = await get_response_json(reply)
            return {**told, "pid": os.getpid(), "environment": os.environ.get("VIRTUAL_ENV")}


    if __name__ == "__main__":
        Asking.run_webserver()
"""
NEEDY = "surely-missing>=2\n"


def needy(root, name, source, requirements=NEEDY):
    """Write a component that asks for what is not here, with an environment that is made: this interpreter's own."""
    folder = write_component(root, name, source)
    (folder / "requirements.txt").write_text(requirements)
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


def mixed(**more):
    return configuration({"colours": {}, "asking": {}}, isolate="unmet", skip_venv_if_present=True, **more)


async def test_one_server_runs_in_its_environment_and_its_death_is_told(root, tmp_path, caplog):
    write_component(root, "colours")
    python = needy(root, "asking", ASKS)
    told = []
    async with EmbeddedDeployment(mixed(), log_dir=tmp_path / "logs", tell=told.append) as deployment:
        reply = orjson.loads((await deployment.send("asking", "/run", b"{}")).body)
        assert reply == {"colour": "teal", "pid": reply["pid"], "environment": str(python.parent.parent)}
        assert reply["pid"] != os.getpid()
        os.kill(reply["pid"], signal.SIGKILL)
        assert await until(lambda: "'asking' ended on its own with signal SIGKILL" in caplog.text, 60)
        async with asyncio.timeout(60):
            with pytest.raises(SendFailed) as caught:
                await deployment.send("asking", "/run", b"{}")
        assert caught.value.delivery is Delivery.NOT_SENT
        assert orjson.loads((await deployment.send("colours", "/run", b"{}")).body) == {"colour": "teal"}
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["asking.log"]
    assert told == []


async def test_every_death_is_told_once(root, tmp_path, caplog):
    write_component(root, "colours")
    needy(root, "asking", ASKS)
    needy(root, "other", ASKS)
    config = configuration({"colours": {}, "asking": {}, "other": {}}, isolate="unmet", skip_venv_if_present=True)
    async with EmbeddedDeployment(config, log_dir=tmp_path / "logs") as deployment:
        for name in ("asking", "other"):
            reply = orjson.loads((await deployment.send(name, "/run", b"{}")).body)
            os.kill(reply["pid"], signal.SIGKILL)
            assert await until(lambda name=name: f"{name!r} ended on its own" in caplog.text, 60)
    assert caplog.text.count("ended on its own") == 2


async def test_a_child_that_does_not_start_ends_the_others_too(root, tmp_path):
    write_component(root, "colours")
    needy(root, "asking", "raise SystemExit(7)\n")
    deployment = EmbeddedDeployment(mixed(), log_dir=tmp_path / "logs")
    with pytest.raises(ServerDiedError, match=r"'asking' ended while it was starting with exit code 7"):
        await deployment.start()
    assert (tmp_path / "logs" / "asking.log").is_file()


async def test_a_port_that_is_taken_is_told_before_a_child_starts(root, tmp_path):
    write_component(root, "colours")
    needy(root, "asking", ASKS)
    config = mixed()
    with listening_socket() as held:
        config.asking.resources_servers.asking.port = held.getsockname()[1]
        with pytest.raises(PortTakenError, match=r"'asking'"):
            await EmbeddedDeployment(config, log_dir=tmp_path / "logs").start()


async def test_processes_have_environments_of_their_own_too(root, tmp_path):
    write_component(root, "colours")
    python = needy(root, "asking", ASKS)
    async with ProcessDeployment(mixed(), tmp_path / "logs") as deployment:
        reply = orjson.loads((await deployment.send("asking", "/run", b"{}")).body)
    with pytest.raises(ProcessLookupError):
        os.kill(reply["pid"], 0)
    assert (reply["colour"], reply["environment"]) == ("teal", str(python.parent.parent))


@pytest.mark.parametrize("deployment", [EmbeddedDeployment, ProcessDeployment])
async def test_missing_packages_are_all_named_with_the_ways_out(root, tmp_path, deployment):
    write_component(root, "colours")
    needy(root, "asking", ASKS, f"{NEEDY}pyyaml<1\n")
    config = configuration({"colours": {}, "asking": {}})
    made = deployment(config) if deployment is EmbeddedDeployment else deployment(config, tmp_path)
    with pytest.raises(MissingPackageError) as caught:
        await made.start()
    said = str(caught.value)
    assert "resources_servers/asking asks for surely-missing>=2, pyyaml<1 (" in said
    assert "pip install 'surely-missing>=2' 'pyyaml<1'" in said
    assert "--isolate" in said
    assert "++ignore_requirements=true" in said


async def test_a_package_that_an_environment_lacks_is_named_with_the_file_to_add_it_to(root, tmp_path):
    write_component(root, "colours")
    python = needy(root, "asking", "import surely_unlisted\n")
    place = root / "resources_servers" / "asking" / "requirements.txt"
    with pytest.raises(MissingPackageError) as caught:
        await EmbeddedDeployment(mixed(), log_dir=tmp_path / "logs").start()
    assert f"in its environment ({python}); add surely_unlisted to {place}" in str(caught.value)
    assert "pip install" not in str(caught.value)


async def test_credentials_of_missing_packages_are_not_shown(root):
    folder = write_component(root, "colours")
    (folder / "requirements.txt").write_text("surely-missing @ git+https://me:s3cret@example.test/p.git\n")
    with pytest.raises(MissingPackageError) as caught:
        await EmbeddedDeployment(configuration({"colours": {}})).start()
    masked = "surely-missing @ git+https://****@example.test/p.git"
    assert f"asks for {masked}." in str(caught.value)
    assert f"pip install '{masked}'" in str(caught.value)
    assert "s3cret" not in str(caught.value)


async def test_packages_that_are_not_needed_after_all_may_be_missing(root):
    folder = write_component(root, "careless")
    (folder / "requirements.txt").write_text(NEEDY)
    async with EmbeddedDeployment(configuration({"careless": {}}, ignore_requirements=True)) as deployment:
        assert (await deployment.send("careless", "/run", b"{}")).status == 200


async def test_where_the_fields_names_are_missing_it_is_said_what_to_type(root, monkeypatch):
    folder = write_component(root, "of_the_field")
    (folder / "requirements.txt").write_text("-e nemo-gym[dev] @ ../../\n")
    monkeypatch.setattr(isolation, "NAMES", "surely-missing")
    with pytest.raises(MissingPackageError, match=r"of_the_field is written for .*\(nemo_gym\).*; run: pip install "):
        await EmbeddedDeployment(configuration({"of_the_field": {}}, isolate="all")).start()


async def test_packages_that_cannot_be_told_are_refused_an_environment_and_nothing_else(root):
    folder = write_component(root, "built")
    (folder / "pyproject.toml").write_text('[project]\nname = "built"\ndynamic = ["dependencies"]\n')
    with pytest.raises(ConfigError, match=r"no environment can be made for resources_servers/built: .*requirements\.t"):
        await EmbeddedDeployment(configuration({"built": {}}, isolate="all")).start()
    async with EmbeddedDeployment(configuration({"built": {}})) as deployment:
        assert (await deployment.send("built", "/run", b"{}")).status == 200


async def test_an_environment_is_asked_of_the_installer_with_ours_and_the_components_lines(root, tmp_path):
    folder = write_component(root, "colours", APP)
    (folder / "requirements.txt").write_text("surely-missing<9\n-e nemo-gym[dev] @ ../../\n")
    (folder / "overrides.txt").write_text("Surely_Missing==7\nelse==1\n")
    commands, told = [], []

    async def run(command, folder, log, variables, held):
        commands.append((tuple(command), variables))
        return 0

    config = {"cache_dir": str(tmp_path / "cache"), "uv_cache_dir": "/uv", "pip_install_verbose": True}
    found = await pythons_for(config, [component_in(folder).needs], told.append, run)
    python = found[folder]
    assert python.is_relative_to(tmp_path / "cache" / "environments")
    lines = (python.parents[2] / "requirements.txt").read_text().splitlines()
    assert [line for line in lines if "rollbook" not in line and not line.startswith("-e ")] == [
        "Surely_Missing==7",
        "pytest",
        "pytest-asyncio",
    ]
    assert all("--verbose" in command for command, _ in commands if "install" in command)
    assert [variables for _, variables in commands] == [{"UV_CACHE_DIR": "/uv"}] * 2


@pytest.mark.parametrize(
    ("isolate", "lacks", "isolated"),
    [("none", True, False), ("unmet", False, False), ("unmet", True, True), ("all", False, True), ("all", True, True)],
)
def test_who_is_isolated_follows_from_what_was_asked_and_what_is_missing(component, isolate, lacks, isolated):
    found = component_in(component(requirements=NEEDY if lacks else "pyyaml\n"))
    assert is_isolated(found, isolation_of({"isolate": isolate})) is isolated


def test_what_ships_is_not_isolated_for_being_somebody_elses():
    ours = component_in(isolation.PARENT_DIR / "resources_servers" / "mcqa")
    assert not is_isolated(ours, Isolation.ALL)


@pytest.mark.parametrize(("given", "read"), [(None, "none"), (True, "unmet"), (False, "none"), ("all", "all")])
def test_isolation_is_read_from_the_configuration(given, read):
    assert isolation_of({"isolate": given}) == read


def test_another_word_for_isolation_is_refused():
    with pytest.raises(ConfigError, match=r"`isolate` is 'some'; write one of none, unmet, all"):
        isolation_of({"isolate": "some"})


async def test_a_server_without_an_entry_point_is_left_to_whoever_starts_it(root):
    config = configuration({"nowhere": {}}, isolate="all")
    assert await interpreters(config, server_instances(config), print) == {}


async def test_an_empty_group_has_nothing_to_wait_for(tmp_path):
    group = ProcessGroup(configuration({}), tmp_path)
    await group.wait_until_all_are_up()
    await group.close()
    assert group.gone("anybody")()
