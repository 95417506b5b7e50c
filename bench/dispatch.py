"""How fast rollouts are collected, beside a client that posts the same bytes and keeps nothing of the replies.

Rules:
* Limit and collection take turns against one server; what is compared is their medians.
* The rate is the run's own, from its first send to its last commit, as its `--json` summary tells it.
"""

import argparse
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from figures import GYM, run, say_load
from resume import served, write_rows

CONCURRENCY = 256
_CLIENT = Path(__file__).with_name("limit_client.py")


@dataclass(frozen=True, slots=True)
class Case:
    """So many rollouts with replies of so many bytes; `share` of the limit is to be reached with each durability."""

    rollouts: int
    reply: int
    share: dict[str, float]


CASES = (Case(50_000, 2048, {"sync": 0.60, "flush": 0.75}), Case(5_000, 102_400, {"sync": 0.60}))


def limit_rate(port: int, case: Case, row: int, folder: Path) -> float:
    """Return what the client reaches, in requests a second."""
    said = folder / "limit.txt"
    url = f"http://127.0.0.1:{port}/run"
    numbers = map(str, (case.rollouts, CONCURRENCY, row))
    done = run(sys.executable, str(_CLIENT), url, *numbers, output=said)
    if done.code:
        sys.exit(done.error[-2000:])
    return float(said.read_text())


def own_rate(port: int, rows: Path, durability: str, folder: Path) -> float:
    """Return what a run says of itself, in rollouts a second."""
    said = folder / "summary.json"
    flags = f"--no-serve --overwrite --json --concurrency {CONCURRENCY} --durability {durability}".split()
    head = ("++head_server.host=127.0.0.1", f"++head_server.port={port}")
    where = ("--input", str(rows), "--output", str(folder / "run" / "rollouts.jsonl"))
    done = run(str(GYM), "eval", "run", *flags, *where, *head, output=said)
    if done.code:
        sys.exit(done.error[-2000:])
    return float(json.loads(said.read_text())["dispatch"]["rollouts_per_second"])


def main(runs: int, scale: float) -> None:
    """Print each case's share of the limit."""
    say_load("dispatch")
    for case in CASES:
        taken = Case(max(1000, int(case.rollouts * scale)), case.reply, case.share)
        with tempfile.TemporaryDirectory() as name, served(taken.reply) as port:
            folder = Path(name)
            rows = folder / "rows.jsonl"
            write_rows(rows, taken.rollouts)
            row = rows.stat().st_size // taken.rollouts
            rates: dict[str, list[float]] = {durability: [] for durability in ("limit", *taken.share)}
            for _ in range(runs):
                rates["limit"].append(limit_rate(port, taken, row, folder))
                for durability in taken.share:
                    rates[durability].append(own_rate(port, rows, durability, folder))
            say_shares(taken, {name: statistics.median(rate) for name, rate in rates.items()})


def say_shares(case: Case, rates: dict[str, float]) -> None:
    """Print what a case came to."""
    limit = rates["limit"]
    for durability, least in case.share.items():
        share = rates[durability] / limit
        name = f"{case.rollouts} x {case.reply} B, {durability}"
        said = "ok" if share >= least else "UNDER"
        found = f"{rates[durability]:8.0f}/s  aiohttp {limit:8.0f}/s"
        print(f"{name:34} {found}  {share:6.1%} of it (least {least:.0%})  {said}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    main(given.runs, given.scale)
