"""Logs of inspect_ai, as it wrote them and as somebody hostile might."""

import json
import struct
import zipfile
import zlib
from pathlib import Path

import pytest

from rollbook.inputs import inspect_log_archive
from rollbook.inputs.inspect_log_messages import input_items, output_items
from rollbook.inputs.inspect_log_scores import number_of
from rollbook.inputs.log_formats import opened_logs
from rollbook.inputs.logged import LogError
from rollbook.records.outcome import Failed, Scored, Unscored

LOGS = Path(__file__).parents[2] / "data" / "inspect"


def rollouts(path, scorer=None):
    [log] = opened_logs([path])
    return list(log.rollouts(scorer))


def came_of(path):
    """Return how many rollouts a log holds, or the path where an error names it."""
    try:
        return len(rollouts(path))
    except LogError as error:
        return str(path) if str(path) in str(error) else str(error)


def outcomes(path, scorer=None):
    return [rollout.ending and rollout.ending.outcome for rollout in rollouts(path, scorer)]


@pytest.mark.parametrize(
    ("value", "worth"),
    [
        *(("C", 1.0), ("P", 0.5), ("I", 0.0), ("N", 0.0), ("yes", 1.0), ("True", 1.0), ("no", 0.0), ("FALSE", 0.0)),
        *((True, 1.0), (False, 0.0), (3, 3.0), (0.25, 0.25), ("0.5", 0.5), ("1e2", 100.0)),
        *(("c", None), ("nan", None), ("inf", None), ("", None), (None, None), ([1], None), (10**400, None)),
        (float("nan"), None),
    ],
)
def test_a_score_is_worth_what_inspect_makes_of_it_and_nothing_else_is_a_reward(value, worth):
    assert number_of(value) == worth


@pytest.mark.parametrize("name", ["epochs.eval", "deflated.eval"])
def test_every_epoch_of_a_sample_is_a_try_at_one_task(name):
    found = rollouts(LOGS / name)

    assert [rollout.repeat for rollout in found] == [0, 1, 2] * 4
    assert [rollout.content["id"] for rollout in found] == [f"sum-{n}" for n in (1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4)]
    assert [rollout.ending.outcome.reward for rollout in found] == [1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1]
    assert found[0].row["expected_answer"] == "2"
    assert found[0].row["responses_create_params"] == {"input": [{"role": "user", "content": "What is 1 + 1?"}]}


def test_a_sample_that_raised_is_a_failure_and_never_a_zero():
    assert [type(outcome) for outcome in outcomes(LOGS / "errors.eval")] == [Scored] * 2 + [Failed] * 2 + [Scored] * 2
    failed = outcomes(LOGS / "errors.eval")[2]
    assert (failed.failure_class, failed.exception_type, failed.terminal) == ("agent_run_error", "RuntimeError", True)


def test_a_limit_without_a_score_is_a_failure_and_with_one_a_score():
    assert [(one.failure_class, one.kind) for one in outcomes(LOGS / "limits.json")] == [
        ("agent_run_error", "inspect_ai:message_limit")
    ] * 2
    assert outcomes(LOGS / "scored_limits.json") == [Scored(1.0), Scored(0.0)]


def test_what_was_cancelled_or_never_tried_is_told_apart_from_what_failed():
    told = {(r.content["id"], r.repeat): r.ending and r.ending.outcome for r in rollouts(LOGS / "cancelled.eval")}

    assert told["sum-1", 0] == told["sum-1", 1] == Scored(1.0)
    assert told["sum-2", 0].failure_class == "agent_run_error"
    assert told["sum-2", 1] is told["sum-4", 1] is None
    assert {told["sum-3", 0].failure_class, told["sum-3", 1].failure_class} == {"cancelled"}


@pytest.mark.parametrize(
    ("scorer", "rewards"),
    [
        ("match", [1, 1, 0, 0]),
        ("letters", [1, 0.5, 0, 0]),
        ("several/is_short", [1, 1, 1, 0]),
        ("not_a_number", [0.25, None, 0.25, 0.25]),
    ],
)
def test_the_scorer_that_was_asked_for_rewards_and_every_score_is_a_field(scorer, rewards):
    found = rollouts(LOGS / "scorers.json", scorer)

    assert [getattr(rollout.ending.outcome, "reward", None) for rollout in found] == rewards
    assert found[1].ending.payload["score/letters"] == 0.5
    assert found[0].ending.payload["score/several/length"] == 1.0
    assert isinstance(found[1].ending.outcome, Unscored) is (rewards[1] is None)


@pytest.mark.parametrize(("scorer", "said"), [(None, "say with --scorer"), ("mach", "no sample has a score of mach")])
def test_which_scorer_rewards_is_never_guessed(scorer, said):
    with pytest.raises(LogError, match=said):
        rollouts(LOGS / "scorers.json", scorer)


def test_a_tool_call_and_its_result_are_items_of_the_output_and_tokens_are_summed():
    [rollout] = rollouts(LOGS / "tools.json")
    response = rollout.ending.payload["response"]

    assert [item["type"] for item in response["output"]] == [
        *("message", "function_call", "function_call_output", "message")
    ]
    assert response["output"][1]["arguments"] == '{"a":1,"b":1}'
    assert response["usage"]["output_tokens"] == 14
    assert response["usage"]["input_tokens_details"] == {"cached_tokens": 8}


def test_choices_and_answers_are_kept():
    found = rollouts(LOGS / "choices.eval")

    assert found[0].row["choices"] == ["4", "7", "9"]
    assert [rollout.ending.payload["extracted_answer"] for rollout in found] == ["B", "B", "C", "A"]


def test_what_was_attached_is_put_in_its_place_and_a_bomb_of_attachments_is_refused(tmp_path):
    reference = "attachment://" + "a" * 32
    document = json.loads((LOGS / "tools.json").read_text())
    document["samples"][0] |= {"input": f"see {reference}", "attachments": {"a" * 32: "the picture"}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    assert rollouts(path)[0].row["responses_create_params"]["input"][0]["content"] == "see the picture"

    document["samples"][0] |= {"input": reference * 300, "attachments": {"a" * 32: "x" * (1 << 20)}}
    path.write_text(json.dumps(document))
    with pytest.raises(LogError, match="characters"):
        rollouts(path)


def test_parts_of_messages_map_as_far_as_they_can():
    parts = [
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "text", "text": "so"},
        {"type": "audio", "audio": "data:…"},
        7,
    ]
    output = output_items(
        [{"role": "user", "content": "q"}, {"role": "assistant", "source": "generate", "content": parts}], str
    )

    assert [item["type"] for item in output] == ["reasoning", "message"]
    assert [part["text"] for part in output[1]["content"]] == ["so", "[audio]"]
    image = [{"role": "user", "content": [{"type": "image", "image": "data:image/png;base64,x"}]}]
    assert input_items(image, str)[0]["content"][0]["image_url"] == "data:image/png;base64,x"
    assert input_items({"no": "messages"}, str) == []


def archive_with(path, entries, *, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(LOGS / "deflated.eval") as source, zipfile.ZipFile(path, "w", compression) as target:
        target.writestr("header.json", source.read("header.json"))
        for name, text in entries.items():
            target.writestr(name, text)
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[" * 100_000, "nested deeper|not read as a log"),
        (b'{"id":"x","a":' + b"[" * 5000 + b"]" * 5000 + b"}", "nested deeper"),
        (b'{"id": "x", "epoch": "1"}', "epoch is '1'"),
        (b'{"id": "x", "epoch": -1}', "epoch is -1"),
        (b"[1]", "no sample but"),
        (b'{"id": "x"', "not read as a log"),
        (b'{"id": "\xff"}', "not read as a log"),
    ],
)
def test_a_hostile_sample_is_one_error_that_names_it(tmp_path, text, said):
    path = archive_with(tmp_path / "h.eval", {"samples/x_epoch_1.json": text})

    with pytest.raises(LogError, match=said) as caught:
        rollouts(path)
    assert "samples/x_epoch_1.json" in str(caught.value)


@pytest.mark.parametrize(
    "value", [0, "x", [], {}, [[]], [None], {"a": 1}, True, None, 1e308, [{"role": 3, "content": {}}]]
)
@pytest.mark.parametrize(
    "field",
    [
        *("input", "target", "choices", "messages", "output", "scores", "error", "limit", "attachments", "metadata"),
        *("model_usage", "total_time", "started_at"),
    ],
)
def test_a_field_of_another_type_is_read_as_nothing_or_named(tmp_path, field, value):
    document = json.loads((LOGS / "tools.json").read_text())
    document["samples"][0][field] = value
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document))
    assert came_of(path) in (1, str(path))


def test_a_name_that_climbs_out_of_a_folder_is_only_a_name(tmp_path):
    sample = json.dumps({"id": "../../etc/passwd", "epoch": 1, "input": "?", "target": ""})
    path = archive_with(tmp_path / "h.eval", {"samples/../../etc/passwd_epoch_1.json": sample})

    last = [rollout for rollout in rollouts(path) if rollout.ending is not None]
    assert [rollout.row["problem_id"] for rollout in last] == ["../../etc/passwd"]


def test_a_bomb_is_refused_before_it_goes_off(tmp_path, monkeypatch):
    monkeypatch.setattr(inspect_log_archive, "MOST_BYTES", 1 << 20)
    path = archive_with(tmp_path / "b.eval", {"samples/x_epoch_1.json": b" " * (8 << 20)})

    with pytest.raises(LogError, match="inflates to more"):
        rollouts(path)


def test_all_entries_together_are_bounded_too(tmp_path, monkeypatch):
    monkeypatch.setattr(inspect_log_archive, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(inspect_log_archive, "MOST_TIMES", 0)
    path = archive_with(tmp_path / "b.eval", {f"samples/x_epoch_{n}.json": b" " * (600 << 10) + b"{}" for n in (1, 2)})

    with pytest.raises(LogError, match="inflates to more"):
        rollouts(path)


@pytest.mark.parametrize("damage", [b"", b"PK", b"PK\x03\x04" + b"\0" * 40, b"{}", b"[", b"\0" * 64])
def test_what_is_no_log_is_named_with_the_forms_that_are_known(tmp_path, damage):
    path = tmp_path / "x.eval"
    path.write_bytes(damage)

    with pytest.raises(LogError, match=r"x\.eval: no log of a known form \(inspect_ai\)"):
        rollouts(path)


@pytest.mark.parametrize("at", range(0, 14_000, 997))
@pytest.mark.parametrize("name", ["deflated.eval", "epochs.eval"])
def test_an_archive_with_a_damaged_byte_is_read_whole_or_named(tmp_path, at, name):
    text = bytearray((LOGS / name).read_bytes())
    text[at] ^= 0x55
    path = tmp_path / "d.eval"
    path.write_bytes(text)
    assert came_of(path) in (12, str(path))


def test_an_entry_that_lies_about_where_it_is_is_named(tmp_path):
    path = archive_with(tmp_path / "l.eval", {"samples/x_epoch_1.json": b"{}"}, compression=zipfile.ZIP_STORED)
    text = path.read_bytes()
    at = text.rindex(b"PK\x01\x02") + 42
    path.write_bytes(text[:at] + struct.pack("<I", 5) + text[at + 4 :])

    with pytest.raises(LogError, match=r"no entry begins|checksum"):
        rollouts(path)


def test_a_checksum_that_differs_is_damage(tmp_path):
    path = archive_with(tmp_path / "c.eval", {"samples/x_epoch_1.json": b'{"id": "x"}'}, compression=zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b'{"id": "x"}', b'{"id": "y"}'))

    with pytest.raises(LogError, match="checksum differs"):
        rollouts(path)
    assert zlib.crc32(b"") == 0


def test_a_sample_that_is_there_twice_is_found_when_it_is_numbered_and_nothing_is_dropped_here(tmp_path):
    document = json.loads((LOGS / "tools.json").read_text())
    document["samples"] *= 2
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document))

    assert [rollout.repeat for rollout in rollouts(path)] == [0, 0]


def test_of_a_log_that_never_ended_the_journal_is_the_header(tmp_path):
    path = tmp_path / "j.eval"
    with zipfile.ZipFile(LOGS / "deflated.eval") as source, zipfile.ZipFile(path, "w") as target:
        for name in ("_journal/start.json", "samples/sum-1_epoch_1.json"):
            target.writestr(name, source.read(name))

    assert [type(outcome) for outcome in outcomes(path)].count(type(None)) == 11
