"""Which output a run's files belong to, whatever name or link leads to them.

Rules:
* A run owns its history by where it lies, not by a name: a manifest or a journal is proof; a derived report is none.
* A reader may follow one unambiguous way to a run's files. A writer that goes on with a run wants every file of its
  history beside the output it writes, so that two names never split one run.
* Nothing is written, moved or guessed: what is ambiguous is refused, and both places are named.
* No two runs write one file: an output whose files belong to a run beside it is refused.

Source: collection.md §1.2, §5.4.6, §21.3 (22).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rollbook.errors import LedgerError
from rollbook.ledger.manifest_store import read_manifest
from rollbook.ledger.paths import (
    RunPaths,
    failures_path_for,
    manifest_log_path_for,
    manifest_path_for,
    materialized_path_for,
)

_COMPANIONS: Final = ("_failures", "_materialized_inputs")
_SUFFIX: Final = ".jsonl"
_TORN: Final = ".torn"
_LOCK: Final = ".lock"
_ENDINGS: Final = tuple(path.name[1:] for path in RunPaths(Path("r.jsonl")).every_file if path.stem != "r")
"""What the names of a run's files have behind the stem of its output, but for the output's own."""


def journal_path_for(output: Path) -> Path:
    """Return the attempt journal that older versions kept beside `output`; it is only ever read."""
    return output.with_name(f"{output.stem}_attempts.jsonl")


def resolve_rollout_owner(path: Path) -> Path:
    """Return the main output of the run that `path`, a failures sidecar or materialized inputs, belongs to.

    A path that has a history of its own, or whose name leads to no run with one, is returned as it is.
    """
    if _is_proven(path):
        return path
    for suffix in _COMPANIONS:
        if path.suffix == _SUFFIX and path.stem.endswith(suffix) and path.stem != suffix:
            owner = _output_named(path.parent, path.stem.removesuffix(suffix))
            return owner if _is_proven(owner) else path
    return path


def resolve_rollout_path(output: Path, read_only: bool = False) -> Path:
    """Return the path beside which the history of `output` lies, links followed.

    Raises:
        LedgerError: two places hold a history of it, or (for a writer) some of it lies elsewhere.

    """
    resolved = _followed(output)
    here, there = _history_of(output), _history_of(resolved)
    apart = [path for path in here if _followed(path) not in {_followed(other) for other in there}]
    if read_only:
        if apart and there:
            raise _split(output, resolved, apart)
        return output if apart or resolved == _real(output) else resolved
    elsewhere = [path for path in there if _followed(path) != path]
    if apart or elsewhere:
        raise _split(output, resolved, [*apart, *elsewhere])
    return output if resolved == _real(output) else resolved


def refuse_files_of_others(output: Path, named_by: str = "--output") -> None:
    """Refuse an output, which has its name by `named_by`, of which a file is one that another run beside it writes.

    Raises:
        LedgerError: it is; names the other run.

    """
    other = next(_others(output), None)
    if other is not None:
        raise LedgerError(
            f"{output}: a run of that name would write into the files of the run {other}; give another {named_by}"
        )


def run_that_writes(path: Path) -> Path | None:
    """Return the output of the run, if there is one, of which another file has this name; links are followed."""
    real = _followed(path)
    named = (owner for owner in _writers_of(real, real) if owner != real)
    return next((owner for owner in named if owner.is_file() or set(_history_of(owner)) - {real}), None)


def _others(output: Path) -> Iterator[Path]:
    """Yield the outputs of other runs that share a file with a run at `output`."""
    of_stem = output.with_name(_output_name_at(output))
    if of_stem != output:
        yield of_stem
    yield from filter(_is_proven, _writers_of(output.with_name(output.name.removesuffix(_TORN)), output))
    companions = (path for path in RunPaths(output).every_file if path != output)
    yield from (path for path in companions if _is_proven(path) and _output_name_at(path) == path.name)


def _writers_of(path: Path, asked: Path) -> Iterator[Path]:
    """Yield the outputs whose runs, if there are any, write `path`, other than a run `asked` for."""
    if path != asked:
        yield path
    stems = [path.name.removesuffix(ending) for ending in _ENDINGS if path.name.endswith(ending)]
    if path.name.startswith(".") and path.suffix == _LOCK:
        stems.append(path.stem[1:])
    yield from (_output_named(path.parent, stem) for stem in stems if stem)


def _output_name_at(output: Path) -> str:
    """Return the name of the output whose run lies at the stem of `output`: its own, where nothing says otherwise."""
    if not _history_of(output):
        return output.name
    try:
        manifest = read_manifest(manifest_path_for(output))
    except LedgerError:
        manifest = None
    named = None if manifest is None else manifest.output
    if named is not None and Path(named).name == named and Path(named).stem == output.stem:
        return named
    usual = output.with_name(f"{output.stem}{_SUFFIX}")
    return usual.name if usual.exists() and not output.exists() else output.name


def _is_proven(output: Path) -> bool:
    proofs = (manifest_path_for(output), manifest_log_path_for(output), journal_path_for(output))
    return any(path.exists() for path in proofs)


def _output_named(folder: Path, stem: str) -> Path:
    """Return the output with that stem; a companion's name does not say how its output's name ends."""
    usual = folder / f"{stem}{_SUFFIX}"
    if usual.exists() or not folder.is_dir():
        return usual
    others = [path for path in folder.iterdir() if path.stem == stem and path.is_file()]
    return others[0] if len(others) == 1 else usual


def _history_of(output: Path) -> list[Path]:
    """Return the files of a run's history that lie beside `output`, links included."""
    history = (
        failures_path_for(output),
        materialized_path_for(output),
        manifest_path_for(output),
        manifest_log_path_for(output),
        journal_path_for(output),
    )
    return [path for path in history if path.exists() or path.is_symlink()]


def _real(path: Path) -> Path:
    """Return `path` in its folder's real place; the file itself may still be a link."""
    return path.parent.resolve() / path.name


def _followed(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise LedgerError(f"{path}: the link leads nowhere ({error}); give the file's own path") from error


def _split(output: Path, resolved: Path, apart: list[Path]) -> LedgerError:
    return LedgerError(
        f"{output} is written as {resolved}, and part of its history lies elsewhere: {', '.join(map(str, apart))}. "
        f"Put the files of the run beside {resolved}, or give the path of one complete run"
    )
