"""Data sets from and to the Hugging Face hub, against the part of its API that they need."""

import logging
import os
import sys

import huggingface_hub.constants
import pytest

from fake_hub import COMMIT, TOKEN, serving_hub
from rollbook.config.datasets import HuggingFaceSource
from rollbook.errors import HubError, InputError, OutputExistsError
from rollbook.verbs.hub import Hub, Publication

ROWS = b'{"a": 1}\n{"a": 2}\n'
MORE = b'{"a": 3}\n'


@pytest.fixture
def remote(tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with serving_hub() as hub:
        hub.files = {"train.jsonl": ROWS, "README.md": b"# Sums\n"}
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub
    huggingface_hub.close_session()


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out" / "rows.jsonl"


def nothing_left(output):
    return not output.parent.exists() or list(output.parent.iterdir()) == []


def test_a_file_is_fetched_as_it_is(remote, output):
    fetched = Hub().fetch_artifact("owner/sums", "train.jsonl", output)
    assert output.read_bytes() == ROWS
    assert (fetched.commit, fetched.files) == (COMMIT, ("train.jsonl",))


def test_the_token_is_shown_to_the_hub_and_logged_nowhere(remote, output, caplog):
    with caplog.at_level(logging.DEBUG):
        Hub(TOKEN).fetch_artifact("owner/sums", "train.jsonl", output)
    assert any(headers.get("authorization") == f"Bearer {TOKEN}" for _, _, headers in remote.requests)
    assert caplog.text
    assert TOKEN not in caplog.text


def test_a_hub_that_repeats_the_token_does_not_have_it_told(remote, output):
    remote.refusal = (400, {"X-Error-Message": f"no access for {TOKEN}"})
    with pytest.raises(HubError, match=r"HTTP 400: .*no access for \*\*\*\*") as caught:
        Hub(TOKEN).fetch_artifact("owner/sums", "train.jsonl", output)
    assert TOKEN not in str(caught.value)


def asked_from(remote):
    return [headers["range"] for _, _, headers in remote.requests if "range" in headers]


def test_a_download_that_is_cut_short_goes_on_where_it_stopped(remote, output, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 4)
    remote.cut_after = 10
    Hub().fetch_artifact("owner/sums", "train.jsonl", output)
    assert output.read_bytes() == ROWS
    assert asked_from(remote) == ["bytes=8-"]


def test_a_download_goes_on_where_an_earlier_process_stopped(remote, output, tmp_path):
    remote.served = {"train.jsonl": ROWS[:7]}
    with pytest.raises(HubError):
        Hub().fetch_artifact("owner/sums", "train.jsonl", output)
    (part,) = (tmp_path / "cache" / "rollbook_parts").iterdir()
    part.write_bytes(ROWS[:7])
    remote.served = {}
    Hub().fetch_artifact("owner/sums", "train.jsonl", output)
    assert output.read_bytes() == ROWS
    assert asked_from(remote) == ["bytes=7-"]
    assert not part.exists()


def test_a_revision_is_the_one_that_is_fetched_from(remote, output):
    remote.revisions["v2"] = "a" * 40
    remote.revisions["a" * 40] = "a" * 40
    assert Hub().fetch_artifact("owner/sums", "train.jsonl", output, revision="v2").commit == "a" * 40
    with pytest.raises(HubError, match=r"owner/sums at v3: HTTP 404"):
        Hub().fetch_artifact("owner/sums", "train.jsonl", output, revision="v3", overwrite=True)


def test_a_split_in_parts_is_joined_in_their_order(remote, output):
    remote.files = {"data/train-00001-of-00002.jsonl": MORE, "data/train-00000-of-00002.jsonl": ROWS[:-1]}
    Hub().fetch_split("owner/sums", "train", output)
    assert output.read_bytes() == ROWS + MORE


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (("train.jsonl", "train-00000-of-00001.jsonl"), ("train.jsonl",)),
        (("train/b.jsonl", "train/a.jsonl", "validation.jsonl"), ("train/a.jsonl", "train/b.jsonl")),
        (("data/train.jsonl", "train_hard.jsonl"), ("data/train.jsonl",)),
    ],
)
def test_the_files_of_a_split_are_told_by_their_names(remote, output, names, taken):
    remote.files = dict.fromkeys(names, ROWS)
    assert Hub().fetch_split("owner/sums", "train", output).files == taken


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("train-00000-of-00001.parquet",), r"no split `train` in JSONL.*train-00000-of-00001\.parquet"),
        (("a/train.jsonl", "b/train.jsonl"), r"in several files; name a file with --artifact"),
        (("train-00000-of-00002.jsonl",), r"parts of `train` are missing"),
    ],
)
def test_a_split_that_the_names_do_not_tell_is_refused_with_the_files(remote, output, names, told):
    remote.files = dict.fromkeys(names, ROWS)
    with pytest.raises(HubError, match=told):
        Hub().fetch_split("owner/sums", "train", output)
    assert nothing_left(output)


def test_every_file_of_rows_is_fetched_under_its_own_name(remote, tmp_path):
    remote.files["sub/validation.jsonl"] = MORE
    Hub().fetch_all("owner/sums", tmp_path / "all")
    assert {one.name: one.read_bytes() for one in (tmp_path / "all").iterdir()} == {
        "train.jsonl": ROWS,
        "validation.jsonl": MORE,
    }


def test_a_file_that_is_not_there_is_told_with_the_near_ones(remote, output):
    with pytest.raises(HubError, match=r"owner/sums has no file `trian\.jsonl`.*train\.jsonl"):
        Hub().fetch_artifact("owner/sums", "trian.jsonl", output)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, r"HTTP 401: the hub asks who you are: set hf_token"),
        (404, r"HTTP 404: there is none, or it is private"),
        (429, r"HTTP 429: the hub takes no more requests"),
    ],
)
def test_a_refusal_is_told_with_what_to_do_and_leaves_no_file(remote, output, status, told):
    remote.refusal = (status, {"Retry-After": "0"})
    with pytest.raises(HubError, match=told):
        Hub().fetch_artifact("owner/sums", "train.jsonl", output)
    assert nothing_left(output)


def test_a_hub_that_is_not_there_is_one_error(remote, output, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(HubError, match="owner/sums"):
        Hub().fetch_artifact("owner/sums", "train.jsonl", output)


@pytest.mark.parametrize("large", [False, True])
def test_content_that_is_not_what_the_hub_says_is_thrown_away(remote, output, large):
    remote.large = {"train.jsonl"} if large else set()
    remote.served = {"train.jsonl": ROWS.replace(b"1", b"7")}
    with pytest.raises(HubError, match=r"arrived as 18 bytes with the digest .*thrown away"):
        Hub().fetch_artifact("owner/sums", "train.jsonl", output)
    assert nothing_left(output)
    remote.served = {}
    Hub().fetch_artifact("owner/sums", "train.jsonl", output)
    assert output.read_bytes() == ROWS


def test_a_body_that_is_shorter_than_the_file_leaves_none(remote, output):
    remote.served = {"train.jsonl": ROWS[:5]}
    with pytest.raises(HubError, match=r"owner/sums: train\.jsonl"):
        Hub().fetch_artifact("owner/sums", "train.jsonl", output)
    assert nothing_left(output)


def test_a_pipe_is_not_replaced_by_what_was_fetched(remote, output):
    output.parent.mkdir()
    os.mkfifo(output)
    with pytest.raises(InputError, match="is no file"):
        Hub().fetch_artifact("owner/sums", "train.jsonl", output)
    assert output.is_fifo()


def test_a_file_that_could_not_be_fetched_leaves_the_earlier_one(remote, output):
    output.parent.mkdir()
    output.write_bytes(b"before\n")
    remote.served = {"train.jsonl": ROWS[:5]}
    with pytest.raises(HubError):
        Hub().fetch_artifact("owner/sums", "train.jsonl", output, overwrite=True)
    assert [one.read_bytes() for one in output.parent.iterdir()] == [b"before\n"]


def test_an_earlier_file_stays_and_the_hub_is_not_asked_for_its_rows(remote, output):
    output = output.with_name("train.jsonl")
    output.parent.mkdir()
    output.write_bytes(b"before\n")
    for fetch in (
        lambda: Hub().fetch_artifact("owner/sums", "train.jsonl", output),
        lambda: Hub().fetch_split("owner/sums", "train", output),
        lambda: Hub().fetch_all("owner/sums", output.parent),
    ):
        with pytest.raises(OutputExistsError, match=r"train\.jsonl is there already\. Replace it with --overwrite"):
            fetch()
    assert (output.read_bytes(), asked_from(remote)) == (b"before\n", [])
    Hub().fetch_all("owner/sums", output.parent, overwrite=True)
    assert output.read_bytes() == ROWS


def test_a_source_without_a_file_is_the_split_of_its_data_sets_type(remote, output):
    Hub().fetch_source(HuggingFaceSource(type="huggingface", repo_id="owner/sums"), "train", output)
    assert output.read_bytes() == ROWS


def test_rows_are_published_with_their_words(remote, tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(ROWS)
    publication = Publication("owner/sums", "validation.jsonl", message="New rows", description="Made by hand")
    published = Hub(TOKEN).publish(tmp_path / "rows.jsonl", publication)
    (commit,) = remote.commits
    assert commit["files"] == {"validation.jsonl": ROWS}
    assert (commit["summary"], commit["description"], commit["proposed"]) == ("New rows", "Made by hand", False)
    assert (remote.made[0]["name"], remote.made[0]["type"]) == ("sums", "dataset")
    assert published.url.endswith(f"/commit/{COMMIT}")


def test_a_proposed_change_makes_no_data_set(remote, tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(ROWS)
    published = Hub(TOKEN).publish(tmp_path / "rows.jsonl", Publication("owner/sums", "train.jsonl", create_pr=True))
    assert (remote.made, remote.commits[0]["proposed"]) == ([], True)
    assert published.url.endswith("/discussions/1")


def test_without_the_package_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(HubError, match=r"pip install 'rollbook\[hub\]'"):
        Hub()


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("told", ["{victim}", "../../victim/notes", "0" * 39, "A" * 64, 7])
def test_a_digest_that_is_none_names_no_file(remote, output, tmp_path, large, told):
    victim = tmp_path / "victim" / "notes"
    victim.parent.mkdir()
    victim.with_name("notes.part").write_text("precious")
    digest = told.format(victim=victim) if isinstance(told, str) else told
    remote.told = {"lfs": {"sha256": digest, "size": 18, "pointerSize": 130}} if large else {"blobId": digest}
    with pytest.raises(HubError, match=r"owner/sums: the hub tells of a file with the (blob|sha256)"):
        Hub().fetch_artifact("owner/sums", "train.jsonl", output)
    assert [path.read_text() for path in victim.parent.iterdir()] == ["precious"]
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("name", ["../train.jsonl", "/etc/train.jsonl", "a//train.jsonl", "\x1b[2J.jsonl", "n" * 300])
def test_a_name_that_no_data_set_has_is_not_fetched(remote, output, tmp_path, name):
    remote.files = {name: ROWS}
    with pytest.raises(HubError, match="owner/sums: the hub tells of a file with the name") as caught:
        Hub().fetch_artifact("owner/sums", name, output)
    assert str(caught.value).isprintable()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("commit", ["main", "../main", None])
def test_a_hub_that_names_no_commit_is_not_fetched_from(remote, output, commit):
    remote.revisions["main"] = commit
    remote.names_no_commit = commit is None
    with pytest.raises(HubError, match="owner/sums: the hub names no commit, but"):
        Hub().fetch_artifact("owner/sums", "train.jsonl", output)
    assert nothing_left(output)


def test_files_without_a_digest_are_not_gone_on_with_as_another(remote, tmp_path):
    remote.files = {"a.jsonl": ROWS, "b.jsonl": MORE}
    remote.told = {"blobId": None}
    remote.served = {"a.jsonl": ROWS[:5]}
    with pytest.raises(HubError):
        Hub().fetch_artifact("owner/sums", "a.jsonl", tmp_path / "a.jsonl")
    Hub().fetch_artifact("owner/sums", "b.jsonl", tmp_path / "b.jsonl")
    assert (tmp_path / "b.jsonl").read_bytes() == MORE
