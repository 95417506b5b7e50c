"""`gym dataset …`: what is printed, what is written, and what is refused."""

import json
import os
from pathlib import Path

import huggingface_hub.constants
import pytest

from declared import question, read_rows, write_rows
from fake_hub import COMMIT, TOKEN, serving_hub
from rollbook.cli.entry import exit_code_of

CONFIG = """
config_paths: [resources_servers/string_match/configs/string_match.yaml]
string_match:
  resources_servers:
    string_match:
      datasets:
      - {name: t, type: train, jsonl_fpath: data/t.jsonl, license: MIT, num_repeats: 2, source: {type: huggingface,
         repo_id: owner/sums, artifact_fpath: train.jsonl}}
"""
ROWS = b'{"responses_create_params": {"input": "1+1"}, "expected_answer": "2"}\n'
COLLATE = ("dataset", "collate", "--config", "own.yaml", "--mode", "train_preparation", "--output-dir", "out")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", "")
    Path("own.yaml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def remote(here, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(here / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(here / "token"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with serving_hub() as hub:
        hub.files = {"train.jsonl": ROWS, "sub/validation.jsonl": ROWS * 2}
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub
    huggingface_hub.close_session()


@pytest.fixture
def gym(capsys):
    def gym(*arguments):
        code = exit_code_of(list(arguments))
        out, err = capsys.readouterr()
        assert TOKEN not in out + err
        return code, out, err

    return gym


def test_rows_are_rendered_and_name_their_template(gym):
    write_rows(Path("rows.jsonl"), [{"question": "1+1"}, {"question": "{x}"}])
    Path("p.yaml").write_text("system: Be short.\nuser: What is {question}? {{}}\n")
    code, out, _ = gym("dataset", "render", "-i", "rows.jsonl", "--prompt-config", "p.yaml", "-o", "new/r.jsonl")
    assert (code, out) == (0, "Materialized 2 rows to new/r.jsonl\n")
    first, second = read_rows("new/r.jsonl")
    assert first["responses_create_params"]["input"] == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "What is 1+1? {}"},
    ]
    assert second["prompt_config_used"] == str(Path("p.yaml").resolve())


def test_rows_are_rendered_through_a_link_and_not_in_the_place_of_a_pipe(gym, here):
    write_rows(Path("rows.jsonl"), [{"question": "1+1"}])
    Path("p.yaml").write_text("user: '{question}'\n")
    Path("real.jsonl").write_text("before")
    Path("link.jsonl").symlink_to("real.jsonl")
    os.mkfifo("pipe")
    render = ("dataset", "render", "-i", "rows.jsonl", "--prompt-config", "p.yaml", "-o")
    code, _, err = gym(*render, "pipe")
    assert (code, "pipe is no file" in err, Path("pipe").is_fifo()) == (1, True, True)
    code, _, err = gym(*render, "link.jsonl")
    assert (code, "Replace it with --overwrite" in err, Path("real.jsonl").read_text()) == (1, True, "before")
    code, _, _ = gym(*render, "link.jsonl", "--overwrite")
    assert (code, Path("link.jsonl").is_symlink(), len(read_rows("real.jsonl"))) == (0, True, 1)


def test_rows_with_an_input_of_their_own_are_not_rendered(gym):
    write_rows(Path("rows.jsonl"), [{"question": "1+1"}, question("2+2")])
    Path("p.yaml").write_text("user: '{question}'\n")
    code, _, err = gym("dataset", "render", "-i", "rows.jsonl", "--prompt-config", "p.yaml", "-o", "r.jsonl")
    assert (code, "rows.jsonl:2" in err, Path("r.jsonl").exists()) == (1, True, False)


def test_what_is_missing_is_named_with_its_flag(gym):
    code, _, err = gym("dataset", "render", "-o", "r.jsonl")
    assert code == 2
    assert "input_jsonl_fpath, prompt_config" in err
    assert "--input FILE, --prompt-config PATH" in err


def test_declared_data_sets_are_collated_and_counted(gym):
    write_rows(Path("data/t.jsonl"), [question("1+1", expected_answer="2")])
    code, out, err = gym(*COLLATE)
    assert (code, out) == (0, "out/train.jsonl: 2 rows (t: 1, 2 times each); metrics in out/train_metrics.json\n"), err
    code, out, _ = gym(*COLLATE, "--json")
    assert json.loads(out)["types"][0]["datasets"][0]["path"] == str(Path("data/t.jsonl").resolve())


def test_a_data_set_that_is_not_there_is_fetched_where_that_is_asked_for(gym, remote):
    code, _, err = gym(*COLLATE)
    assert (code, "--download" in err) == (1, True)
    code, _, err = gym(*COLLATE, "--download")
    assert (code, Path("data/t.jsonl").read_bytes()) == (0, ROWS), err
    assert len(read_rows("out/train.jsonl")) == 2


def test_a_gitlab_registry_is_refused_wherever_it_is_named(gym):
    assert "GitLab registries are not supported" in gym(*COLLATE, "+data_source=gitlab")[2]
    for words in (
        ("download", "--storage", "gitlab", "--name", "d"),
        ("upload", "--storage", "gitlab", "-i", "x"),
        ("rm", "--name", "d"),
        ("migrate", "-i", "x", "--name", "d", "--create-pr"),
    ):
        code, _, err = gym("dataset", *words)
        assert (code, "GitLab registries are not supported; " in err) == (2, True), words


def test_a_file_a_split_or_everything_is_downloaded(gym, remote):
    repo = ("dataset", "download", "--repo-id", "owner/sums")
    code, out, err = gym(*repo, "--artifact", "sub/validation.jsonl", "-o", "v.jsonl")
    assert (code, out) == (0, f"v.jsonl: sub/validation.jsonl of owner/sums at {COMMIT}\n"), err
    assert gym(*repo, "--split", "train", "--output-dir", "one", "--revision", "main")[0] == 0
    assert Path("one/train.jsonl").read_bytes() == ROWS
    code, out, _ = gym(*repo, "--output-dir", "all", "--json")
    assert [Path(one["output"]).name for one in json.loads(out)] == ["validation.jsonl", "train.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--repo-id", "o/d"), "--output FILE or --output-dir DIR"),
        (("--repo-id", "o/d", "-o", "x"), "--artifact FILE or --split SPLIT"),
        (("--repo-id", "o/d", "-o", "x", "--artifact", "a", "--split", "b"), "exclude each other"),
        (("-o", "x"), "--repo-id OWNER/NAME"),
        (("--repo-id", "o/d", "--name", "n", "-o", "x"), "about GitLab"),
    ],
)
def test_a_download_that_is_not_said_whole_is_a_mistake_of_usage(gym, arguments, told):
    code, _, err = gym("dataset", "download", *arguments)
    assert (code, told in " ".join(err.split())) == (2, True), err


def test_rows_are_published_under_the_split_and_the_organizations_name(gym, remote):
    Path("rows.jsonl").write_bytes(ROWS)
    remote.repo = "owner/Nemotron-RL-sums"
    upload = ("dataset", "upload", "-i", "rows.jsonl", "--name", "sums", "--split", "train")
    code, _, err = gym(*upload)
    assert (code, "OWNER/NAME" in err) == (1, True)
    code, out, err = gym(*upload, "+hf_organization=owner", "--commit-message", "New", "--create-pr")
    assert code == 0, err
    assert out.startswith("owner/Nemotron-RL-sums: train.jsonl, 1 row: http")
    assert (remote.commits[0]["summary"], remote.commits[0]["proposed"]) == ("New", True)


def test_what_are_no_rows_is_not_published(gym, remote):
    Path("rows.jsonl").write_text("[1]\n")
    code, _, err = gym("dataset", "upload", "-i", "rows.jsonl", "--name", "owner/sums")
    assert (code, "rows.jsonl:1" in err, remote.requests) == (1, True, [])


@pytest.mark.parametrize("name", ["equivalence_llm_judge", "hotpotqa_qa", "math_with_judge"])
def test_rows_that_a_model_judges_are_collated_without_one(gym, name):
    mode = ("--mode", "example_validation", "--output-dir", "out")
    code, out, err = gym("dataset", "collate", "--resources-server", name, *mode)
    assert (code, err) == (0, "")
    assert out.startswith("out/example.jsonl: ")
