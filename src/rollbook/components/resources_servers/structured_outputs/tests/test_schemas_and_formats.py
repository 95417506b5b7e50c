import json

import pytest

pytest.importorskip("jsonschema")

from resources_servers.structured_outputs.checking import fault
from resources_servers.structured_outputs.elements import read_xml
from resources_servers.structured_outputs.questions import Question
from resources_servers.structured_outputs.schemas import strict

TEXT, WHOLE, REAL, TRUTH, NULL = ({"type": kind} for kind in ("string", "integer", "number", "boolean", "null"))


def of(**properties):
    return {"type": "object", "properties": properties}


def many(items):
    return {"type": "array", "items": items}


def or_null(kind):
    return {"type": [kind, "null"]}


def error(text, schema, form="json"):
    found = fault(Question(schema if isinstance(schema, str) else json.dumps(schema), text, form))
    return found and found.error_type


def fits(text, schema, form="json"):
    return error(text, schema, form) is None


@pytest.mark.parametrize(
    ("text", "schema", "fitting"),
    [
        ('{"a": 1}', of(a=WHOLE, b=WHOLE) | {"required": ["a"]}, False),
        ('{"a": 1, "z": 2}', of(a=WHOLE), False),
        ('{"a": 1, "z": 2}', of(a=WHOLE) | {"additionalProperties": True}, False),
        ('{"a": 1}', of(a=WHOLE) | {"required": {"item": ["a"]}, "additionalProperties": "false"}, True),
        ('{"a": {"b": 1, "z": 2}}', of(a={"properties": {"b": WHOLE}}), False),
        ('[{"a": 1, "z": 2}]', many(of(a=WHOLE)), False),
        ('{"a": {"z": 1}}', of(a={"type": "object"}), True),
        ('{"a": {"z": 1}}', of(a=of()), False),
        ('{"a": {"z": 1}}', of(a={"type": "object", "additionalProperties": WHOLE}), True),
        ('{"a": {"z": 1}}', of(a={"anyOf": [of(b=WHOLE), NULL]}), True),
        ('{"b": 1, "c": 2}', {"allOf": [of(b=WHOLE), of(c=WHOLE)]}, True),
        ('{"a": {"b": 1, "z": 2}}', of(a={"$ref": "#/$defs/x"}) | {"$defs": {"x": of(b=WHOLE)}}, False),
        ('{"properties": {"a": 1}, "required": 2}', of(properties=of(a=WHOLE), required=WHOLE), True),
        ('{"a": {"properties": {"b": 1}}}', of(a={"const": {"properties": {"b": 1}}}), True),
        ('{"a": null}', of(a={"type": "integer", "nullable": True}), True),
        ('{"a": null}', of(a={"type": "integer", "nullable": "true"}), True),
        ('{"a": null}', of(a={"type": "integer", "nullable": False}), False),
        ('{"a": null}', of(a=or_null("integer") | {"nullable": True}), True),
        ('{"a": 1.0}', of(a=WHOLE), True),
        ('{"a": true}', of(a=WHOLE), False),
        ('{"a": "soon"}', of(a={"type": "string", "format": "date"}), True),
        ('{"a": "x"}', of(a={"enum": ["y"]}), False),
        ("5", "true", True),
        ("5", "{}", True),
    ],
)
def test_a_schema_is_made_strict_at_any_depth(text, schema, fitting):
    assert fits(text, schema) is fitting


def test_making_a_schema_strict_leaves_the_one_given_as_it_is():
    given = of(a={"type": "integer", "nullable": True}, b=many(of(c=TEXT)))
    before = json.dumps(given)
    assert strict(given)["required"] == ["a", "b"]
    assert json.dumps(given) == before


@pytest.mark.parametrize(
    "schema",
    [
        "no schema",
        "[]",
        "null",
        {"type": "town"},
        {"pattern": "("},
        {"$ref": "#/nowhere"},
        {"$ref": "http://127.0.0.1:9/schema"},
        {"$ref": "file:///etc/hostname"},
        {"$dynamicRef": "http://127.0.0.1:9/#x"},
        '{"not":' * 5000 + "{}" + "}" * 5000,
    ],
)
def test_a_schema_that_cannot_be_used_is_said_to_be_one_and_nothing_is_fetched(schema):
    assert error("5", schema) == "schema_error"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("json", '```json\n{"a": 1}\n```'),
        ("json", '{"a": 1} Done.'),
        ("json", '{"a": Infinity}'),
        ("json", "[" * 100_000),
        ("json", "9" * 10_000),
        ("yaml", "```yaml\na: 1\n```"),
        ("yaml", "a: 1\n---\na: 2"),
        ("yaml", "a: !!python/object:os.system x"),
        ("yaml", "a: 2020-99-99"),
        ("yaml", "[" * 10_000),
        ("yaml", "- " * 10_000 + "x"),
        ("yaml", "a: &x [*x]"),
        ("yaml", "a: *x"),
        ("xml", "<a>1</a><b>2</b>"),
        ("xml", "<a>&nbsp;</a>"),
        ("xml", "<!DOCTYPE a><a>1</a>"),
        ("xml", '<!DOCTYPE a SYSTEM "file:///etc/hostname"><a>1</a>'),
        ("xml", '<!DOCTYPE a [<!ENTITY b "1"><!ENTITY c "&b;&b;">]><a>&c;</a>'),
        ("xml", "<a>" * 10_000),
        ("xml", "\ud800"),
        ("yaml", "a: .nan"),
        ("yaml", "a: -.Inf"),
        ("toml", "a"),
        ("toml", "a = nan"),
        ("toml", "a = [+inf]"),
        ("toml", "a = " + "[" * 10_000),
        ("csv", 'a\n"' + "x" * 200_000 + '"'),
    ],
)
def test_a_text_that_is_not_in_its_format_or_grows_is_unreadable(form, text):
    assert error(text, "{}", form) == "parse_error"


@pytest.mark.parametrize("step", ["[{0}]", "{{<<: [{0}]}}"])
def test_aliases_that_stand_for_millions_are_refused(step):
    lines = ["a0: &a0 {k: v}"]
    lines += [f"a{at}: &a{at} {step.format(', '.join([f'*a{at - 1}'] * 10))}" for at in range(1, 12)]
    assert error("\n".join(lines), "{}", "yaml") == "parse_error"
    assert fits("\n".join(lines[:4]), "{}", "yaml")


@pytest.mark.parametrize(
    ("form", "text", "schema"),
    [
        ("yaml", "a: 1\nb: yes", of(a=WHOLE, b=TRUTH)),
        ("yaml", "a: &x [1]\nb: *x", of(a=many(WHOLE), b=many(WHOLE))),
        ("yaml", "a: 1.5\nb: 1_0.5", of(a=REAL, b=REAL)),
        ("toml", "a = 1.5\nb = 1_0.5", of(a=REAL, b=REAL)),
        ("toml", "[[a]]\nb = 1.0\n[[a]]\nb = 2", of(a=many(of(b=WHOLE)))),
        ("csv", 'a,b\n1,"x, y"\n2,\n', many(of(a=WHOLE, b=TEXT))),
        ("csv", "b,a\r\nx,1\r\n", many(of(a=WHOLE, b=TEXT))),
        ("csv", "a,b\n,TRUE", many(of(a=or_null("integer"), b=TRUTH))),
        ("csv", "a\n1.5", many(of(a=or_null("number")))),
        ("csv", "a,b", many(of(a=WHOLE, b=TEXT))),
        ("csv", "a,b\n1,x", of(a=WHOLE, b=TEXT)),
        ("csv", "a\n1", many({"$ref": "#/$defs/x"}) | {"$defs": {"x": of(a=WHOLE)}}),
        ("csv", "a\n1", "{}"),
    ],
)
def test_a_text_in_its_format_fits_its_schema(form, text, schema):
    assert fits(text, schema, form)


@pytest.mark.parametrize(
    ("form", "text", "schema"),
    [
        ("yaml", "a: 2020-01-01", of(a=TEXT)),
        ("yaml", "1: 2", of(**{"1": WHOLE})),
        ("yaml", "1: 2", {"patternProperties": {"x": WHOLE}}),
        ("toml", "a = 2020-01-01", of(a=TEXT)),
        ("csv", "a,b\n1", many(of(a=WHOLE, b=TEXT))),
        ("csv", "a,b\n1,x,y", many(of(a=WHOLE, b=TEXT))),
        ("csv", "a\n1.0", many(of(a=WHOLE))),
        ("csv", "a\n", many(of(b=WHOLE))),
        ("csv", "Sorry, no.", many(of(a=WHOLE, b=TEXT))),
        ("csv", "a\n1\n2", of(a=WHOLE)),
        ("csv", "a\nnan", many(of(a=REAL))),
        ("csv", "a\n-Infinity", many(of(a=REAL))),
        ("csv", "a\n1_0", many(of(a=WHOLE))),
        ("csv", "a\n1_0", many(of(a=REAL))),
        ("csv", "a\n1;2", many(of(a=many(WHOLE)))),
        ("json", "1", {"$ref": "#"}),
        ("json", "9" * 4000, {"multipleOf": 0.1}),
    ],
)
def test_a_text_in_its_format_that_does_not_fit_is_invalid(form, text, schema):
    assert error(text, schema, form) == "validation_error"


@pytest.mark.parametrize(
    ("inside", "schema", "fitting"),
    [
        ("<a> 1 </a>", WHOLE, True),
        ("<a>1.0</a>", WHOLE, False),
        ("<a>x</a>", WHOLE, False),
        ("<a/>", WHOLE, False),
        ("<a>1e3</a>", REAL, True),
        ("<a>1,000</a>", REAL, False),
        ("<a>nan</a>", REAL | {"minimum": 0, "maximum": 120}, False),
        ("<a>inf</a>", REAL, False),
        ("<a>1_0</a>", WHOLE, False),
        ("<a>-.5</a>", REAL, True),
        ("<a>+05</a>", WHOLE, True),
        ("<a>True</a>", TRUTH, True),
        ("<a>0</a>", TRUTH, True),
        ("<a>yes</a>", TRUTH, False),
        ("<a>5</a>", TEXT, True),
        ("<a/>", TEXT, True),
        ("<a/>", or_null("integer"), True),
        ("<a>5</a>", or_null("integer"), True),
        ("<a>null</a>", NULL, False),
        ("<a>x</a>", {"type": ["integer", "string"]}, True),
        ("<a>5</a>", {"anyOf": [WHOLE, NULL]}, True),
        ("<a>5</a>", {"$ref": "#/$defs/x"}, True),
        ("<a>1</a><a>2</a>", many(WHOLE), True),
        ("<a>1</a>", many(WHOLE), True),
        ("<a/>", many(WHOLE), True),
        ("<a>1</a><a>2</a>", WHOLE, False),
        ("<a><item>1</item><item>2</item></a>", many(WHOLE), True),
        ("<a><item>1</item></a>", many(WHOLE), True),
        ("<a><x>1</x><y>2</y></a>", many(WHOLE), False),
        ("<a><b>1</b></a>", many(of(b=WHOLE)), True),
        ("<a><item><b>1</b></item></a>", many(of(b=WHOLE)), True),
        ("<a/>", of(), True),
        ("<a><b>1</b></a>", {"properties": {"b": WHOLE}}, True),
        ("<a><b>1</b></a>", {"type": "object", "additionalProperties": WHOLE}, True),
        ('<a b="1">x</a>', of(**{"@b": WHOLE, "#text": TEXT}), True),
        ('<a b="1">5</a>', WHOLE, False),
        ("<a><![CDATA[1]]><!-- one --></a>", WHOLE, True),
        ("<a>" + "9" * 5000 + "</a>", WHOLE, False),
    ],
)
def test_elements_are_typed_by_the_schema(inside, schema, fitting):
    whole = of(r=of(a=schema)) | {"$defs": {"x": WHOLE}}
    assert fits(f"<r>{inside}</r>", whole, "xml") is fitting


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("<a>1</a>", of(a=WHOLE)),
        ("<city><a>1</a><b>x</b></city>", of(a=WHOLE, b=TEXT)),
        ("<cities><city><a>1</a></city><city><a>2</a></city></cities>", many(of(a=WHOLE))),
        ("<years><year>1</year></years>", many(WHOLE)),
        ('<?xml version="1.0" encoding="utf-16"?><a>é</a>', of(a=TEXT)),
    ],
)
def test_the_root_element_goes_where_the_schema_does_not_name_it(text, schema):
    assert fits(text, schema, "xml")


def test_repeated_elements_are_a_list_and_text_among_elements_has_a_name():
    assert read_xml("<r>x<a>1</a>y<a/><a><b>2</b></a></r>", 9) == {"r": {"a": ["1", None, {"b": "2"}], "#text": "xy"}}


@pytest.mark.parametrize("form", ["json", "yaml", "xml", "toml", "csv"])
def test_megabytes_of_one_text_are_read(form):
    text = "x" * (100_000 if form == "csv" else 2_000_000)
    wrapped = {"json": '{"a": "%s"}', "yaml": "a: %s", "xml": "<a>%s</a>", "toml": 'a = "%s"', "csv": "a\n%s"}
    assert fits(wrapped[form] % text, of(a=TEXT), form)
