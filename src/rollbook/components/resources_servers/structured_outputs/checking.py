"""Whether a text fits a schema, and if not, why.

Rules:
* The schema is made strict first, and XML and CSV are typed by it.
* A schema that cannot be used is the row's fault, and has a kind of failure of its own.
* An explanation is short, whatever the text and the schema hold.

Source: servers.md §7.3 (6).
"""

import json
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable

from resources_servers.structured_outputs.coercion import coerced_csv, coerced_xml
from resources_servers.structured_outputs.questions import Fault, Question
from resources_servers.structured_outputs.reading import Table, UnreadableError, read
from resources_servers.structured_outputs.schemas import strict

MOST_CHARACTERS: Final = 1000


def fault(question: Question) -> Fault | None:
    """Return why a text does not fit its schema, or nothing when it does."""
    try:
        schema = strict(json.loads(question.schema_str))
        Draft202012Validator.check_schema(schema)
    except (ValueError, SchemaError, RecursionError) as error:
        return _fault("schema_error", error)
    try:
        value = read(question.text, question.form)
    except UnreadableError as error:
        return _fault("tool_arguments_parse_error" if question.is_tool_call else "parse_error", error)
    if question.payload_key:
        if not isinstance(value, dict) or question.payload_key not in value:
            return Fault(
                "missing_tool_payload_key", f"the arguments have no {question.payload_key[:MOST_CHARACTERS]!r}"
            )
        value = value[question.payload_key]
    return _misfit(value, schema, question)


def _misfit(value: Any, schema: Any, question: Question) -> Fault | None:
    try:
        typed = _typed(value, schema, question)
        error = next(Draft202012Validator(schema, registry=REGISTRY).iter_errors(typed), None)
    except Unresolvable as unresolved:
        return _fault("schema_error", unresolved)
    except RecursionError:
        return Fault("validation_error", "the value is nested too deeply, or the schema refers to itself without end")
    except (ValueError, TypeError, ArithmeticError) as unfit:  # a key that is no text, a number beyond arithmetic
        return _fault("validation_error", unfit)
    if error is None:
        return None
    return Fault("validation_error", _shown(f"{error.json_path}: {error.message}"))


def _typed(value: Any, schema: Any, question: Question) -> Any:
    if isinstance(value, Table):
        return coerced_csv(value, schema)
    if question.form == "xml" and question.coerce_xml:
        return coerced_xml(value, schema)
    return value


def _fault(error_type: str, error: Exception) -> Fault:
    text = error.message if isinstance(error, SchemaError) else str(error)
    return Fault(error_type, _shown(text or type(error).__name__))


def _shown(text: str) -> str:
    return text[:MOST_CHARACTERS].encode("utf-8", "backslashreplace").decode()
