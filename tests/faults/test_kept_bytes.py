"""What of a reply is on disk: its own bytes where the rules allow it, its fields otherwise, and no key twice."""

import json
from dataclasses import dataclass

import pytest

from faults.collected import collected, row, strictly
from faults.raw_server import Says, reply

pytestmark = pytest.mark.filterwarnings("error::ResourceWarning")
STAMPS = ("_ng_task_index", "_ng_rollout_index", "agent_ref", "_ng_environment_server", "_ng_result_type", "_ng_run_id")


@dataclass(frozen=True, slots=True)
class Kept:
    """A reply: whether its bytes stand in the line, and which fields the line has."""

    text: bytes
    fields: dict
    stands: bool


def stands(text):
    return Kept(text, json.loads(text), stands=True)


def anew(text, **fields):
    return Kept(text, fields or json.loads(text), stands=False)


RESULTS = {
    "plain": stands(b'{"reward":1.0,"a":[1,{"b":null}]}'),
    "unicode": stands('{"reward":1.0,"ä":"漢字 😀 \u2028"}'.encode()),
    "escapes": stands(b'{"reward":1.0,"a":"\\u00e9 \\ud83d\\ude00 \\" \\/ \\n\\r\\t\\u0000"}'),
    "white space in text": stands(b'{"reward":1.0,"a":" \\r\\n b "}'),
    "numbers as they were written": stands(b'{"reward":1.0,"a":1e2,"b":-0.0,"c":18446744073709551615,"d":1.50}'),
    "a reward of true": stands(b'{"reward":true}'),
    "no reward": stands(b'{"response":{"output":[]}}'),
    "a masked reward": stands(b'{"reward":0.5,"mask_sample":true}'),
    "our key further down": stands(b'{"reward":1.0,"a":{"_ng_task_index":7}}'),
    "300 levels": stands(b'{"reward":1.0,"a":' + b"[" * 299 + b"]" * 299 + b"}"),
    "white space": anew(b'{ "reward" : 1.0 , "a" : [ 1 ] }'),
    "white space further down": stands(b'{"reward":1.0,"a":{"b": 1}}'),
    "white space around it": anew(b' {"reward":1.0}\t'),
    "a line feed behind it": anew(b'{"reward":1.0}\n'),
    "CRLF inside": anew(b'{"reward":1.0,\r\n"a":1}'),
    "CR inside": anew(b'{"reward":1.0,\r"a":1}'),
    "LF further down": anew(b'{"reward":1.0,"a":[1,\n2]}'),
    "CR further down": anew(b'{"reward":1.0,"a":[1,\r2]}'),
    "an escaped key": anew(b'{"reward":1.0,"\\u0061":1}'),
    "an escaped key of ours": anew(b'{"reward":1.0,"_ng\\u005ftask_index":99}', reward=1.0),
    "our keys": anew(b'{"_ng_task_index":99,"reward":1.0,"_ng_run_id":"theirs","_ng_attempt_index":5}', reward=1.0),
    "an agent of its own": anew(b'{"agent_ref":{"name":"other"},"reward":1.0}', reward=1.0),
    "a key twice": anew(b'{"reward":0.0,"a":1,"reward":1.0}', reward=1.0, a=1),
    "a key twice, once escaped": anew(b'{"a":1,"reward":1.0,"\\u0061":2}', reward=1.0, a=2),
    "an empty key twice": anew(b'{"":1,"reward":1.0,"":2}', **{"": 2, "reward": 1.0}),
    "an empty object": anew(b"{}"),
}
NO_RESULTS = {
    "a reward of 1e400": (b'{"reward":1e400}', "agent_run_error", "JSONDecodeError"),
    "1e400 further down": (b'{"reward":1.0,"a":1e400}', "agent_run_error", "JSONDecodeError"),
    "a reward of 400 digits": (b'{"reward":1' + b"0" * 400 + b"}", "verifier_error", None),
    "a reward of text": (b'{"reward":"1"}', "verifier_error", None),
    "BOM": (b'\xef\xbb\xbf{"reward":1.0}', "agent_run_error", "JSONDecodeError"),
    "a line break in text": (b'{"reward":1.0,"a":"b\nc"}', "agent_run_error", "JSONDecodeError"),
    "no UTF-8": (b'{"reward":1.0,"a":"\xff"}', "agent_run_error", "JSONDecodeError"),
    "a surrogate in UTF-8": (b'{"reward":1.0,"a":"\xed\xa0\x80"}', "agent_run_error", "JSONDecodeError"),
    "two objects": (b'{"reward":1.0}{"reward":1.0}', "agent_run_error", "JSONDecodeError"),
    "a comma too many": (b'{"reward":1.0,}', "agent_run_error", "JSONDecodeError"),
    "Infinity": (b'{"reward":1.0,"a":Infinity}', "agent_run_error", "JSONDecodeError"),
    "two thousand levels": (b'{"a":' * 2000 + b"1" + b"}" * 2000, "agent_run_error", "JSONDecodeError"),
}
TWICE_BELOW, BELOW = "a key twice further down", b'{"reward":1.0,"a":{"b":1,"b":2}}'


@pytest.fixture(scope="module", autouse=True)
def replies(server):
    texts = {TWICE_BELOW: BELOW}
    texts |= {name: kept.text for name, kept in RESULTS.items()}
    texts |= {name: text for name, (text, *_) in NO_RESULTS.items()}
    server.replies |= {name: Says(reply(text)) for name, text in texts.items()}


async def test_a_result_is_saved_as_it_came_or_as_its_fields_and_never_with_a_key_twice(server, tmp_path):
    names = [*RESULTS]
    run = await collected(server, tmp_path, [row(name) for name in names])
    assert run.error is None
    found = {names[strictly(line)["_ng_task_index"]]: line for line in run.lines("r.jsonl")}
    assert found.keys() == RESULTS.keys()
    wrong = {name: line for name, line in found.items() if not is_kept(RESULTS[name], line)}
    assert wrong == {}
    assert run.result.coverage.law_holds
    counted = run.result.coverage
    assert (counted.scored, counted.masked, counted.unscored) == (len(names) - 3, 1, 2)


def is_kept(kept, line):
    saved = strictly(line)
    own = {key: value for key, value in saved.items() if key not in STAMPS}
    theirs = {key: value for key, value in kept.fields.items() if key not in STAMPS}
    as_it_came = line.startswith(kept.text[:-1] + b',"_ng_task_index":')
    return own == theirs and as_it_came == kept.stands and set(STAMPS) <= saved.keys()


async def test_a_value_is_its_producers_even_where_it_has_a_key_twice(server, tmp_path):
    run = await collected(server, tmp_path, [row(TWICE_BELOW)])
    (line,) = run.lines("r.jsonl")
    value, stamps = line[: len(BELOW) - 1], line[len(BELOW) :]
    assert value == BELOW[:-1]
    assert set(STAMPS) <= strictly(b"{" + stamps).keys()


async def test_a_reply_that_is_no_result_is_a_failure_on_a_valid_line(server, tmp_path):
    names = [*NO_RESULTS]
    run = await collected(server, tmp_path, [row(name) for name in names], route_failures_to_sidecar=True)
    assert not run.results
    found = {
        names[failed["_ng_task_index"]]: (failed["failure_kind"], failed.get("_ng_failure_type"))
        for failed in run.failures
    }
    assert found == {name: tuple(one[1:]) for name, one in NO_RESULTS.items()}
    assert all("reward" not in failed for failed in run.failures)
