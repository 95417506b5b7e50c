"""The flags that `gym eval compare` and `gym dev compare` share.

Rules:
* Lists are given with commas or by repeating the flag; a path that holds a comma and exists is one path.

Source: collection.md §9.2, §10.7.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import click

from rollbook.cli.flags import flags

run_flags: Final = flags(
    click.option("--baseline", metavar="OUTPUT", help="The run that candidates are held against (required)."),
    click.option(
        "--candidates",
        metavar="OUTPUT[,...]",
        multiple=True,
        help="The runs that are compared with it (required, repeatable).",
    ),
)
agent_flags: Final = flags(
    click.option("--agent", metavar="NAME", help="Compare this agent.  [default: every agent that all runs have]"),
    click.option("--baseline-agent", metavar="NAME", help="The baseline's agent, where it has another name there."),
    click.option(
        "--candidate-agents", metavar="NAME[,...]", multiple=True, help="Each candidate's agent, or one for all."
    ),
)
report_flags: Final = flags(
    click.option(
        "-o", "--output-dir", metavar="DIR", help="Where the report goes.  [default: the first candidate's folder]"
    ),
    click.option(
        "--report-format",
        type=click.Choice(["md", "json", "both"]),
        default="both",
        help="Which report is written.  [default: both]",
    ),
)
row_flags: Final = flags(
    click.option(
        "--gate", metavar="POLICY", help="Hold the candidates to a policy, a YAML file; 6 blocks, 7 undecided."
    ),
    click.option(
        "--pair-by",
        type=click.Choice(["content", "number"]),
        default="content",
        help="What tells that two tasks are the same.  [default: content]",
    ),
    click.option(
        "--min-coverage",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="Less scored than this share gives no verdict.  [default: 0.95]",
    ),
    click.option(
        "--alpha",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="LEVEL",
        help="The level of tests.  [default: 0.05]",
    ),
    click.option(
        "--assume-complete",
        is_flag=True,
        default=None,
        help="Where a run has no plan, take what is there for all that was to be run.",
    ),
    click.option(
        "--flips",
        type=click.IntRange(0),
        default=10,
        metavar="N",
        help="How many flips of a direction are listed.  [default: 10]",
    ),
    click.option("--seed", type=int, default=0, metavar="N", help="The seed of what is drawn by chance.  [default: 0]"),
)


def listed(words: Iterable[str]) -> tuple[str, ...]:
    """Return the names in `words`, which may hold several with commas between them."""
    return tuple(name for word in words for name in _parts(word))


def _parts(word: str) -> Iterator[str]:
    if "," in word and Path(word).exists():
        yield word
    else:
        yield from (part.strip() for part in word.split(",") if part.strip())
