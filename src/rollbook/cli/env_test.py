"""`gym env test`: the flags of running components' own tests.

Rules:
* A name alone has its verifier checked; a server's flag has its test suite run; `--all` has every server's run.

Source: servers.md §10.2.
"""

from typing import Any, Final

import click

from rollbook.cli.flags import flags, isolation_flags
from rollbook.cli.verb import VerbCommand, wants_json


def _suite(flag: str, parameter: str, what: str) -> Any:
    text = f"Run the test suite of {what} (repeatable)."
    return click.option(flag, parameter, metavar="NAME", multiple=True, help=text)


_chosen: Final = flags(
    _suite("--resources-server", "suites_of_resources_servers", "a resources server"),
    _suite("--agent-type", "suites_of_agents", "an agent"),
    _suite("--model-type", "suites_of_models", "a model server"),
    _suite("--benchmark", "suites_of_benchmarks", "a benchmark"),
    click.option(
        "--all",
        "all_servers",
        is_flag=True,
        help="Run the test suite of every server of the roots, of --search-dir alone where it is given.",
    ),
    click.option("--kind", type=click.Choice(["environment", "benchmark"]), help="The shelf on which NAME lies."),
    click.option(
        "--update-expected", is_flag=True, help="Write what NAME's verifier gives into its cases, instead of comparing."
    ),
    click.option(
        "--search-dir", metavar="DIR", multiple=True, help="Look for components and data here first (repeatable)."
    ),
)


@click.command("test", cls=VerbCommand, reports=True, short_help="Run the tests of components.")
@click.argument("words", nargs=-1, metavar="[NAME] [KEY=VALUE]...")
@_chosen
@isolation_flags
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Run the test suites of components where they run, or check the verifier of the environment NAME.

    A suite runs in its component's folder, with the search roots on the import path, under this Python or, with
    --isolate, in the component's own environment.

    Exit code: 0 everything passed, 1 something failed or is missing.
    """
    from rollbook.cli.env_test_session import run_tests  # noqa: PLC0415  paid for by this verb alone

    return run_tests(given, as_json=wants_json(context))
