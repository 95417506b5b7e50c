"""Flags that several verbs have, declared once.

Rules:
* A flag's parameter is named after the configuration key that it sets, so that no second table translates it.
* No flag is required by the parser; what is missing is reported with its flag and its key.

Source: servers.md §10.1, §10.2; collection.md §10.7.
"""

from collections.abc import Callable
from typing import Any, Final

import click

Declared = Callable[..., Any]
_REPEATABLE: Final = frozenset({"benchmark", "environment", "resources_server"})


def flags(*options: Callable[[Declared], Declared]) -> Callable[[Declared], Declared]:
    """Return one decorator that adds `options` in the order in which help lists them."""

    def declare(command: Declared) -> Declared:
        for option in reversed(options):
            command = option(command)
        return command

    return declare


def _selector(parameter: str, what: str) -> Callable[[Declared], Declared]:
    return click.option(
        f"--{parameter.replace('_', '-')}",
        parameter,
        metavar="NAME[/FLAVOR]",
        multiple=parameter in _REPEATABLE,
        help=f"{what} of the shelf{' (repeatable)' if parameter in _REPEATABLE else ''}.",
    )


config_flags: Final = flags(
    click.option("--config", metavar="PATH", multiple=True, help="A configuration file (repeatable)."),
    click.option(
        "--search-dir",
        metavar="DIR",
        multiple=True,
        help="Look for configurations, components and data here first (repeatable).",
    ),
)
benchmark_flag: Final = _selector("benchmark", "A benchmark")
selector_flags: Final = flags(
    benchmark_flag,
    _selector("environment", "An environment"),
    _selector("resources_server", "A resources server"),
    _selector("model_type", "A model server"),
    _selector("agent_type", "An agent that replaces the environment's own"),
    click.option(
        "--allow-unsupported-pairing",
        is_flag=True,
        default=None,
        help="Run an agent or model that the verifier does not admit.",
    ),
)
model_flags: Final = flags(
    click.option("-m", "--model", "policy_model_name", metavar="NAME", help="The policy model's name."),
    click.option("--model-url", "policy_base_url", metavar="URL", help="The policy model's endpoint."),
    click.option("--model-api-key", "policy_api_key", metavar="KEY", help="The policy model's key."),
)
isolation_flags: Final = flags(
    click.option(
        "--isolate",
        "isolate",
        flag_value="unmet",
        default=None,
        help="Give components whose packages are missing here an environment and a process of their own.",
    ),
    click.option(
        "--isolate-all",
        "isolate",
        flag_value="all",
        default=None,
        help="The same for every component that does not ship with Rollbook.",
    ),
)
overrides_argument: Final = click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")


health_check_options: Final = (
    click.option(
        "--no-health-check", "disable_health_check", is_flag=True, default=None, help="Skip the health check."
    ),
    click.option(
        "--health-check-workers",
        type=int,
        metavar="N",
        help="Processes that check health.  [default: one a processor, 8 at most]",
    ),
    click.option("--health-check-ignore", "health_check_ignored_checks", metavar="A,B", help="Checks to leave out."),
)
"""What is typed about the check of health that follows results."""
