"""One `gym env validate`, from its flags to what it prints.

Rules:
* One line a check, its findings below it, each with its file, its line and what to do.
* What was not checked is a line too.

Source: servers.md §10.2, §8.12.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from rollbook.api.driver import load_driver
from rollbook.cli.configuration import given_values, resolved_configuration, texts
from rollbook.cli.event_loop import in_event_loop
from rollbook.cli.terminal import note, say, say_json
from rollbook.config.instances import server_instances
from rollbook.config.manifest import read_manifest
from rollbook.config.names import DUMMY_MODEL
from rollbook.config.parser import GlobalConfigDictParserConfig
from rollbook.config.roots import add_search_dirs, resolve_read_path
from rollbook.errors import RollbookError
from rollbook.report.shapes import VERSION
from rollbook.verbs.validate import manifest_path, validated
from rollbook.verbs.validation import Check, Validation, findings_in

_MARKS: Final = {"ok": "✓", "failed": "✗", "warned": "!", "not checked": "-"}
_MODEL: Final = {"policy_model_name": "--model", "policy_base_url": "--model-url", "policy_api_key": "--model-api-key"}
_OF_AN_ENVIRONMENT: Final = {"sync": "--sync", "kind": "--kind"}


def validate(given: Mapping[str, Any], *, as_json: bool) -> int:
    """Check what the flags in `given` name, print what was found, and return the command's exit code."""
    words = texts(given["words"])
    overrides = tuple(word for word in words if "=" in word or word.startswith(("~", "+")))
    names = [word for word in words if word not in overrides]
    if len(names) > 1 or (names and given["manifest_path"]):
        raise click.UsageError("name one environment, or one --manifest.")
    if not names and given["manifest_path"] is None:
        return _configuration({**given, "overrides": overrides}, as_json=as_json)
    add_search_dirs(texts(given["search_dir"]))
    path = _manifest(names, given)
    found = in_event_loop(checked(path, names[0] if names else path.parent.name, sync=given["sync"]))
    tell(found, strict=given["strict"], as_json=as_json)
    return 0 if found.is_valid(strict=given["strict"]) else 1


def _manifest(names: list[str], given: Mapping[str, Any]) -> Path:
    return manifest_path(names[0], given["kind"]) if names else resolve_read_path(given["manifest_path"], Path.is_file)


async def checked(path: Path, name: str, *, sync: bool = False) -> Validation:
    """Return what was found of an environment, its driver among it where it has one."""
    found = await validated(path, name, sync=sync)
    if found.checks[0].status == "failed":
        return found
    driver = read_manifest(path).rollout_driver
    if driver is None:
        return found
    try:
        await load_driver(driver)
        check = Check("driver", looked_at=driver)
    except RollbookError as error:
        check = Check("driver", findings_in(str(error), str(path)))
    return Validation(found.name, found.manifest, (*found.checks, check), found.synced)


def tell(found: Validation, *, strict: bool, as_json: bool) -> None:
    """Print what was found."""
    if as_json:
        say_json(VERSION | found.as_json(strict=strict))
        return
    if found.synced:
        say(f"✓ wrote the composition into {found.manifest}")
    for check in found.checks:
        _tell_check(check)
    say(f"{found.name}: {_summary(found, strict=strict)}")


def _tell_check(check: Check) -> None:
    words = check.looked_at or ("" if check.findings else f"not checked: {check.unchecked}")
    say(f"{_MARKS[check.status]} {check.name:8} {words}".rstrip())
    for finding in check.findings:
        say(f"    {finding.level}: {finding}")
    if check.unchecked and check.looked_at:
        say(f"    not checked: {check.unchecked}")


def _summary(found: Validation, *, strict: bool) -> str:
    if not found.is_valid(strict=strict):
        return "not valid"
    left = [check.name for check in found.checks if check.unchecked]
    return f"valid, as far as it was checked ({', '.join(left)}: see above)" if left else "valid"


def _configuration(given: Mapping[str, Any], *, as_json: bool) -> int:
    """Check that a configuration resolves; a model that nothing names is a warning, and an error when strict."""
    given_in_vain = [flag for key, flag in _OF_AN_ENVIRONMENT.items() if given[key]]
    if given_in_vain:
        raise click.UsageError(f"{' and '.join(given_in_vain)}: name the environment: gym env validate NAME.")
    placeholders = GlobalConfigDictParserConfig.NO_MODEL_GLOBAL_CONFIG_DICT
    cfg = resolved_configuration(given, settings=_absent_model(given, placeholders))
    if all(one.implementation == DUMMY_MODEL for one in server_instances(cfg)):
        raise click.UsageError("nothing to check: name an environment, or servers with --config or a selector.")
    absent = [key for key in _MODEL if cfg.get(key) == placeholders[key]]
    unnamed = [f"{key} is missing; give {_MODEL[key]} or +{key}=<value>" for key in absent]
    valid = not (unnamed and given["strict"])
    for line in unnamed:
        note(f"{'Error' if given['strict'] else 'Warning'}: {line}")
    if as_json:
        say_json(VERSION | {"valid": valid, "strict": given["strict"], "warnings": unnamed})
    elif valid:
        say("✓ Config is valid.")
    return 0 if valid else 1


def _absent_model(given: Mapping[str, Any], placeholders: Mapping[str, object]) -> dict[str, object]:
    """Return stand-ins for what no flag says of the model, so that everything else can be checked."""
    named = given_values(given, (*_MODEL, "model_type"))
    return {key: value for key, value in placeholders.items() if key not in named and "model_type" not in named}
