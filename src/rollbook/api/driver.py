"""A collection that somebody else's function drives, where this one serves: `rollout_collection_driver`.

Rules:
* The function is awaited with the collection's settings and the resolved configuration, once servers answer.
* It writes results and failures itself, and honours `resume_from_cache`; what counts is what it left on disk.
* Whatever its module or it raises ends the run as one error that names it, and where it was raised.

Source: collection.md §10.1, §15.
"""

import asyncio
import importlib
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from inspect import isawaitable, signature, unwrap
from typing import Final, TypeVar

from msgspec.structs import replace
from omegaconf import DictConfig, OmegaConf

from rollbook.api.request import EvaluationRequest, ServeMode
from rollbook.api.session import Session
from rollbook.config.collection import SharedRolloutCollectionConfig
from rollbook.config.missing import resolved
from rollbook.config.roots import put_roots_on_import_path, search_roots
from rollbook.config.tree import did_you_mean
from rollbook.dispatch.stop import Stop
from rollbook.errors import ConfigError, RollbookError, RunError
from rollbook.ledger.contradictions import told_of_doubles
from rollbook.ledger.history import read_history
from rollbook.ledger.manifest_store import write_manifest
from rollbook.ledger.run import explained

OPTION: Final = "rollout_collection_driver"
Driver = Callable[[SharedRolloutCollectionConfig, DictConfig], Awaitable[object]]
_T = TypeVar("_T")


async def check_driver(request: EvaluationRequest) -> None:
    """Refuse a driver that cannot be had, before anything starts.

    Raises:
        ConfigError: there is no such function, or other people serve.

    """
    name = request.settings.rollout_collection_driver
    if name is None:
        return
    if request.serve is ServeMode.NONE:
        raise ConfigError(f"{OPTION}={name} drives runs that serve their environments; leave --no-serve out, or it")
    await load_driver(name)


async def drive(session: Session, stop: Stop) -> None:
    """Let the settings' driver collect, and fold what it left on disk; a stop that is asked for cancels it.

    Raises:
        ConfigError: there is no such function.
        RunError: it raised.
        LedgerError: it left lines that are no records.

    """
    work = run_driver(session.request.settings, session.deployment.global_config_dict)
    driving, asked = asyncio.ensure_future(work), asyncio.ensure_future(stop.asked.wait())
    try:
        await asyncio.wait({driving, asked}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        asked.cancel()
        driving.cancel()
        await asyncio.wait({driving})
    if not driving.cancelled():
        driving.result()
    _fold(session)


def _fold(session: Session) -> None:
    paths = session.run.paths
    history = read_history(paths)
    session.standings = history.standings
    session.notes += told_of_doubles(paths, history.standings)
    if None in history.run_ids and not session.manifest.adopted:
        session.manifest = replace(session.manifest, adopted=True)
        with explained(paths, paths.manifest):
            write_manifest(paths.manifest, session.manifest)


async def run_driver(settings: SharedRolloutCollectionConfig, config: DictConfig) -> None:
    """Await the settings' driver; a cancellation ends it.

    Raises:
        ConfigError: there is no such function.
        RunError: it raised, or what it returned cannot be awaited.

    """
    name = settings.rollout_collection_driver or ""
    driver = await load_driver(name)
    plain = OmegaConf.create(dict(resolved(config)))
    await _ended(_called(driver, name, settings, plain), lambda error: RunError(f"{OPTION}={name}{_said(error)}"))


async def load_driver(name: str) -> Driver:
    """Return the function that `name`, as `module.path:function`, names.

    Raises:
        ConfigError: `name` is written otherwise, its module is missing or raises, or has no such function.

    """
    path, _, function = name.partition(":")
    if not (all(part.isidentifier() for part in path.split(".")) and function.isidentifier()):
        raise ConfigError(f"{OPTION} is `{name}`; write it as module.path:function")
    return await _ended(_loaded(name, path, function), lambda error: ConfigError(_not_loaded(name, path, error)))


async def _loaded(name: str, path: str, function: str) -> Driver:
    put_roots_on_import_path()
    module = importlib.import_module(path)
    driver: Driver | None = getattr(module, function, None)
    if driver is None or not callable(driver):
        known = [known for known, value in vars(module).items() if callable(value)]
        where = f"{module.__file__}" if module.__file__ else f"`{path}`"
        raise ConfigError(f"{OPTION}={name}: {where} has no function `{function}`.{did_you_mean(function, known)}")
    _check_arguments(driver, name)
    return driver


def _check_arguments(driver: Driver, name: str) -> None:
    """Refuse a function that cannot be called with two arguments; one that does not say what it takes is called."""
    try:
        taken = signature(driver)
    except (TypeError, ValueError):
        return
    try:
        taken.bind(None, None)
    except TypeError as error:
        raise ConfigError(
            f"{OPTION}={name}{_defined_at(driver)} takes {taken} and is called with two arguments, the collection's "
            f"settings and the resolved configuration: {error}"
        ) from error


def _defined_at(driver: Driver) -> str:
    code = getattr(unwrap(driver), "__code__", None)
    return "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"


async def _called(driver: Driver, name: str, settings: SharedRolloutCollectionConfig, config: DictConfig) -> None:
    returned = driver(settings, config)
    if not isawaitable(returned):
        raise RunError(f"{OPTION}={name} is awaited, and returned {type(returned).__name__}; write it as `async def`")
    await returned


async def _ended(work: Coroutine[None, None, _T], error_for: Callable[[BaseException], RollbookError]) -> _T:
    """Return what `work`, which is somebody's code, comes to; an error that is not ours becomes `error_for` it."""
    running = asyncio.ensure_future(_without_exit(work))
    try:
        await asyncio.wait({running})
    finally:
        if not running.done():
            running.cancel()
            await asyncio.wait({running})
    error = asyncio.CancelledError() if running.cancelled() else running.exception()
    if error is None:
        return running.result()
    raise error if isinstance(error, RollbookError) else error_for(error) from error


async def _without_exit(work: Coroutine[None, None, _T]) -> _T:
    try:
        return await work
    except SystemExit as error:
        raise RunError(f"{OPTION} left the process ({error.code}); let it raise or return") from error


def _not_loaded(name: str, path: str, error: BaseException) -> str:
    missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    if missing and f"{path}.".startswith(f"{missing}."):
        roots = ", ".join(str(root) for root in search_roots())
        where = f"neither installed nor below {roots}; check the name, or add its root with --search-dir"
        return f"{OPTION}={name}: there is no module `{missing}`, {where}"
    if missing:
        return f"{OPTION}={name}: its module imports `{missing}`, which is not installed; install it"
    return f"{OPTION}={name} cannot be loaded{_said(error)}"


def _said(error: BaseException) -> str:
    """Say where somebody's code raised what."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    own = [frame for frame in frames if not frame.filename.startswith("<")]
    where = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    text = f": {error}" if str(error) else ""
    return f"{where}: {type(error).__name__}{text}"
