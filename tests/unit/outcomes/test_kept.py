"""Which replies stand in a line of results as they came, and that every line says what its reply said and our keys."""

import json

import msgspec
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rollbook.ledger.saved_line import saved_line
from rollbook.outcomes.classify import ending_of_reply, plain_result
from rollbook.outcomes.kept import standing_reply
from rollbook.plan.rollouts import Destination, numbered, rollout_of
from rollbook.records.codec import RunStamp
from rollbook.records.exchange import Reply
from rollbook.records.keys import COLLECTOR_STAMPS
from rollbook.records.outcome import Masked, Scored, Unscored
from rollbook.records.place import File
from rollbook.records.reading import read_row
from thoroughness import examples

STAMP = RunStamp('run "1"', 3)
ROW = {
    "_ng_task_index": 4,
    "_ng_rollout_index": 1,
    "_ng_rollout_id": "a.1",
    "agent_ref": {"name": "adder"},
    "task_source": "set",
    "skills_ref": ["x"],
}
ROLLOUT = rollout_of(msgspec.json.encode(ROW), lambda *_: Destination("env", "typed", "policy"))
STAMPS = {
    **ROW,
    "_ng_environment_server": "env",
    "_ng_result_type": "typed",
    "ng_policy_model_server": "policy",
    "_ng_run_id": STAMP.run_id,
}

STAND = {
    "a reward": b'{"reward":1.0}',
    "no reward": b'{"note":"x"}',
    "a masked reward": b'{"mask_sample":true,"reward":0}',
    "text that is no ASCII": '{"note":"é \U0001f600 \u2028","reward":1}'.encode(),
    "an escape in a value": rb'{"note":"\u00e9\n\"\/","reward":1}',
    "a key that is no ASCII": '{"é":1}'.encode(),
    "an empty key": b'{"":0}',
    "space in a value's own object": b'{"a":{"b" : [1, 2]}}',
    "a key twice, but not at the top": b'{"a":{"b":1,"b":2}}',
    "our key, but last and not at the top": b'{"reward":1,"a":{"b":1,"_ng_task_index":1}}',
    "our key, but last in a list": b'{"reward":1,"a":[1,"_ng_task_index"]}',
    "our key, but last in a text": rb'{"reward":1,"a":",\"_ng_task_index\":1"}',
    "our key, but not at the top": b'{"a":{"_ng_task_index":1,"agent_ref":2}}',
    "a number that is nearly too large": b'{"a":1e308}',
    "a number of many digits": b'{"a":' + b"9" * 200 + b"}",
    "a number that another writer writes in another way": b'{"a":1e-05}',
    "a reward of more digits than a word holds": b'{"reward":36893488147419103232}',
    "a key that holds what separates": b'{"a\\\\":1}'.replace(b"\\\\", b":,}{"),
}
DO_NOT = {
    "nothing": b"",
    "an empty object": b"{}",
    "an array": b'[{"reward":1}]',
    "a number": b"1",
    "no JSON": b"reward",
    "a part": b'{"reward":1',
    "two": b'{"reward":1}{"reward":2}',
    "NaN": b'{"reward":NaN}',
    "an infinity": b'{"reward":-Infinity}',
    "a number beyond all": b'{"a":1e400}',
    "a number beyond all inside": b'{"a":[{"b":-1e400}]}',
    "an integer beyond all": b'{"a":' + b"9" * 400 + b"}",
    "an integer of more digits than are read": b'{"a":[' + b"9" * 5000 + b"]}",
    "a comment": b'{"a":1/**/}',
    "a comma at the end": b'{"a":1,}',
    "a leading zero": b'{"a":01}',
    "a line feed inside": b'{"a":1,\n"b":2}',
    "a line feed at the end": b'{"a":1}\n',
    "a carriage return": b'{"a":\r1}',
    "a tab in a string": b'{"a":"\t"}',
    "a byte-order mark": b'\xef\xbb\xbf{"a":1}',
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "broken UTF-8": b'{"a":"\xff"}',
    "an overlong NUL": b'{"a":"\xc0\x80"}',
    "half a surrogate pair": rb'{"a":"\ud800"}',
    "a surrogate as UTF-8": b'{"a":"\xed\xa0\x80"}',
    "space after a colon": b'{"a": 1}',
    "space after a comma": b'{"a":1, "b":2}',
    "space before a comma": b'{"a":1 ,"b":2}',
    "space before the end": b'{"a":1 }',
    "space before it": b' {"a":1}',
    "space behind it": b'{"a":1} ',
    "a key twice": b'{"a":1,"a":1}',
    "a key twice, once in disguise": rb'{"a":1,"\u0061":1}',
    "a key twice, as long as its value written once": b'{"a":1,"a":1e6}',
    "a key with an escape": rb'{"\u0061":1}',
    "a key with an escape that is short": rb'{"\/":1}',
    "our key in disguise": rb'{"\u005fng_task_index":7}',
    "nested too deep": b'{"a":' * 1100 + b"1" + b"}" * 1100,
    "nested deeper than writers write": b'{"a":' + b"[" * 500 + b"]" * 500 + b"}",
    "nested deeper than the stack": b'{"a":' + b"[" * 1010 + b"]" * 1010 + b"}",
    "a line feed in an array": b'{"a":[1,\n2]}',
    "a carriage return in an array": b'{"a":[1,\r2]}',
    "NaN inside": b'{"a":[NaN]}',
    "a leading zero inside": b'{"a":[-01]}',
    "a number without a fraction inside": b'{"a":[1.]}',
    "half a number inside": b'{"a":[1e]}',
    "a word inside": b'{"a":{"b":nul}}',
    "a tab in a string inside": b'{"a":["\t"]}',
    "an escape that is none inside": rb'{"a":["\x41"]}',
    "half a surrogate pair inside": rb'{"a":["\udc00"]}',
    "half a surrogate pair in a key inside": rb'{"a":{"\ud800":1}}',
    "a key that is no string inside": b'{"a":{1:1}}',
    "a comma at the end inside": b'{"a":[1,]}',
    "a bracket of another kind": b'{"a":[1}}',
    "a failure": b'{"error":"why","_ng_failure_class":"transient"}',
    "our key, at the end": b'{"reward":1,"a":[{}],"_ng_task_index":4,"_ng_rollout_index":1}',
    "a reward that is no number": b'{"reward":"1"}',
} | {
    f"our key {key}": msgspec.json.encode({"reward": 1, key: 0})
    for key in (*STAMPS, *sorted(COLLECTOR_STAMPS), "_ng_new")
}


@pytest.mark.parametrize("body", STAND.values(), ids=STAND)
def test_a_plain_result_stands_as_it_came(body):
    ending = plain_result(body)
    assert ending is not None
    assert ending.kept == body
    assert isinstance(ending.outcome, Scored | Masked | Unscored)


@pytest.mark.parametrize("body", DO_NOT.values(), ids=DO_NOT)
def test_anything_else_is_looked_at_closer(body):
    assert plain_result(body) is None


def test_the_line_of_a_kept_reply_is_its_text_with_our_keys_behind_it():
    body = rb'{"z":"\u00e9","reward":1.50}'
    saved = saved_line(ROLLOUT, plain_result(body), STAMP)
    assert saved.line.startswith(body[:-1] + b',"_ng_task_index":4')
    assert saved.line.endswith(b'"_ng_run_id":"run \\"1\\""}\n')
    assert (saved.file, saved.outcome) == (File.RESULTS, Scored(1.5))


def test_an_attempt_that_has_a_number_carries_it_on_a_kept_line_once():
    line = saved_line(numbered(ROLLOUT, 2), plain_result(b'{"reward":1}'), STAMP).line
    assert unique(line) == {"reward": 1, **STAMPS, "_ng_attempt_index": 2}


# Any reply.


def unique(line):
    """Read one strict line; a key that is there twice at its top is an error."""

    def top(pairs):
        assert len({key for key, _ in pairs}) == len(pairs), f"a key is there twice: {pairs}"
        return dict(pairs)

    def never(constant):
        raise AssertionError(f"{constant} is no JSON")

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    names = [*msgspec.json.decode(line, type=dict[str, msgspec.Raw])]
    pairs = []
    json.loads(line, object_pairs_hook=lambda found: pairs.append(found) or dict(found), parse_constant=never)
    assert len(names) == len(pairs[-1])
    return top(pairs[-1])


KEYS = st.sampled_from(["reward", "mask_sample", "note", "é", 'q"', "\\", "", *STAMPS, "ng_perf", "_ng_x"]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=4
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3))
ENCODERS = st.sampled_from(
    [
        msgspec.json.encode,
        lambda value: json.dumps(value).encode(),
        lambda value: json.dumps(value, separators=(",", ":")).encode(),
        lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(),
        lambda value: json.dumps(value, ensure_ascii=False, separators=(", ", ":")).encode(),
        lambda value: json.dumps(value, indent=1).encode(),
        lambda value: "".join(f"\\u{ord(one):04x}" if one == "e" else one for one in json.dumps(value)).encode(),
    ]
)
PAIRS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=6)


@settings(max_examples=examples(300), deadline=None)
@given(pairs=PAIRS, encoder=ENCODERS, repeats=st.booleans())
@example(pairs=[("reward", 1.0)], encoder=msgspec.json.encode, repeats=False)
@example(pairs=[("a", 1), ("a", 2)], encoder=msgspec.json.encode, repeats=True)
@example(pairs=[("_ng_task_index", 9), ("reward", 1)], encoder=msgspec.json.encode, repeats=False)
def test_whether_its_text_is_kept_or_not_a_line_says_what_the_reply_said_and_our_keys_once(*, pairs, encoder, repeats):
    body = object_of(pairs if repeats else [*dict(pairs).items()], encoder)
    ending = ending_of_reply(Reply(200, body), ROLLOUT)
    saved = saved_line(ROLLOUT, ending, STAMP)
    says = unique(saved.line)
    assert read_row(saved.line[:-1], saved.file).key == ROLLOUT.key
    assert {key: says[key] for key in STAMPS} == STAMPS
    if saved.file is File.RESULTS:
        assert says == {**(json.loads(body) if ending.kept else ending.payload), **STAMPS}
        assert read_row(saved.line[:-1], saved.file).outcome == ending.outcome
    if ending.kept is not None:
        assert STAMPS.keys().isdisjoint(dict(pairs))
        assert says == {**json.loads(body), **STAMPS}
        assert len(dict(pairs)) == len(pairs) or not repeats


PIECES = st.sampled_from(
    [
        *(
            '"a"',
            '"b":',
            '"reward":',
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "1",
            "0",
            "-",
            ".5",
            "e5",
            "e-05",
            "E400",
            "9" * 310,
        ),
        *("9" * 310, "18446744073709551616", "true", "null", "NaN", " ", "\n"),
        *(r'"\u0041"', r'"\ud800"', r'"\/"', r'"\x"', '"\t"', '"é"'),
    ]
)
VALUES_AS_TEXT = st.recursive(
    st.lists(PIECES, min_size=1, max_size=3).map("".join),
    lambda inner: st.lists(inner, max_size=3).map(lambda found: f"[{','.join(found)}]"),
)
BODIES = (
    st.binary(max_size=40)
    | st.text('{}[]":,\\u0061 \n\r\t1e-.', max_size=30).map(str.encode)
    | st.lists(PIECES, max_size=12).map(lambda found: "".join(found).encode())
    | VALUES_AS_TEXT.map(lambda value: f'{{"a":{value}}}'.encode())
    | st.tuples(VALUES_AS_TEXT, VALUES_AS_TEXT).map(lambda two: f'{{"a":{two[0]},"reward":{two[1]}}}'.encode())
)


@settings(max_examples=examples(400), deadline=None)
@given(BODIES)
def test_whatever_bytes_stand_are_one_compact_strict_object_that_every_reader_reads_alike(body):
    said = standing_reply(body)
    if said is not None:
        assert unique(body + b"\n") == json.loads(body) == msgspec.json.decode(body)
        assert [*orjson.loads(body)] == [*said] == [*msgspec.json.decode(body)]
        assert (body[:1], body[-1:]) == (b"{", b"}")


@settings(max_examples=examples(200), deadline=None)
@given(BODIES)
def test_a_line_that_stands_reads_back_as_the_ending_that_was_told(body):
    ending = plain_result(body)
    if ending is not None:
        saved = saved_line(ROLLOUT, ending, STAMP)
        assert read_row(saved.line[:-1], saved.file).outcome == ending.outcome


def object_of(pairs, encoder):
    """Encode an object whose keys may be there twice, as `encoder` encodes."""
    if len(dict(pairs)) == len(pairs):
        return encoder(dict(pairs))
    return b"{" + b",".join(encoder({key: value})[1:-1] for key, value in pairs) + b"}"
