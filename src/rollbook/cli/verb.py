"""Commands and groups of commands that are loaded when they are called, and flags that all of them share.

Rules:
* A group knows a verb's name and one line of help; the verb's module is imported when the verb is called.
* `-v`, `--json` and `--version` mean the same before and after a verb; a verb that reports nothing refuses `--json`.
* A mistyped verb is answered with the nearest ones, and exit status 2.

Source: servers.md §10.1.
"""

import difflib
import importlib
import logging
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import click

from rollbook.cli.terminal import logged_to_stderr

_LOG = logging.getLogger(__name__)
_JSON: Final = "rollbook.json"
_VERBOSE: Final = "rollbook.verbose"
_VERSION: Final = "rollbook.version"
_HELP_NAMES: Final = {"help_option_names": ["-h", "--help"]}


class Verb(NamedTuple):
    """Where a verb's command lies (`attribute` of `module`), and the line that help shows for it."""

    module: str
    summary: str
    attribute: str = "command"


def wants_json(context: click.Context) -> bool:
    """Whether `--json` was given, before or after the verb."""
    return bool(context.meta.get(_JSON))


def is_verbose(context: click.Context) -> bool:
    """Whether `-v` was given, before or after the verb."""
    return bool(context.meta.get(_VERBOSE))


def _remember(name: str, flags: tuple[str, ...], text: str) -> click.Option:
    def note_flag(context: click.Context, _parameter: click.Parameter, value: object) -> None:
        if value:
            context.meta[name] = True

    return click.Option(flags, is_flag=True, expose_value=False, callback=note_flag, help=text)


def _shared_flags(*, with_json: bool) -> list[click.Parameter]:
    flags: list[click.Parameter] = [_remember(_VERBOSE, ("-v", "--verbose"), "Log everything to standard error.")]
    if with_json:
        flags.append(_remember(_JSON, ("--json",), "Print one JSON document on standard output."))
    return [*flags, _remember(_VERSION, ("--version",), "Print the version and exit.")]


def _answer_version(context: click.Context) -> None:
    if context.meta.get(_VERSION):
        importlib.import_module("rollbook.cli.version").show_version(as_json=wants_json(context))
        context.exit(0)


class VerbCommand(click.Command):
    """A command at the end of the line. `reports` says whether it can answer in JSON."""

    def __init__(self, *arguments: Any, reports: bool = False, **options: Any) -> None:
        options.setdefault("context_settings", _HELP_NAMES)
        super().__init__(*arguments, **options)
        self.reports = reports
        self.params.extend(_shared_flags(with_json=reports))

    def invoke(self, ctx: click.Context) -> Any:
        """Settle the shared flags, then run."""
        _answer_version(ctx)
        if wants_json(ctx) and not self.reports:
            raise click.UsageError(f"--json: '{ctx.command_path}' does not report in JSON.", ctx)
        with logged_to_stderr(verbose=is_verbose(ctx)):
            try:
                return super().invoke(ctx)
            except Exception:
                _LOG.debug("the command failed here", exc_info=True)
                raise


class VerbGroup(click.Group):
    """A group whose verbs are named in a table and imported when they are called."""

    def __init__(self, name: str, verbs: Mapping[str, Verb], *, summary: str) -> None:
        super().__init__(
            name,
            help=summary,
            params=_shared_flags(with_json=True),
            invoke_without_command=True,
            callback=_without_verb,
            context_settings=_HELP_NAMES,
        )
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  the signature is click's
        """Name the verbs in the order of the table."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  as above
        """Import the verb's module and return its command, or None for an unknown name."""
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return None
        command = getattr(importlib.import_module(verb.module), verb.attribute)
        assert isinstance(command, click.Command)  # noqa: S101  the table above names our own modules
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  as above
        """Write the verbs' own lines without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, verb.summary) for name, verb in self.verbs.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; answer a mistyped one with the nearest."""
        name = args[0]
        if name not in self.verbs and not name.startswith("-"):
            near = difflib.get_close_matches(name, self.verbs, n=3)
            hint = f" Did you mean {' or '.join(near)}?" if near else f" Commands: {', '.join(self.verbs)}."
            raise click.UsageError(f"No such command '{ctx.command_path} {name}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.pass_context
def _without_verb(context: click.Context) -> None:
    _answer_version(context)
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(1)
