"""What commands print for programs: one thing has one shape, whichever command tells of it."""

import json

import pytest

from run_folder import RunFolder, replies, said, status_reply
from stub import adding, serving


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """What several commands say of one run, three of whose four rollouts are scored."""
    folder = RunFolder(tmp_path_factory.mktemp("shapes")).asks(adding(4))
    with serving() as stub:
        stub.script = replies({(0,): status_reply(503)})
        run = folder.run(stub, "--json")
    output, merged = str(folder.output), str(folder.folder / "all" / "m.jsonl")
    asked = {
        "status": ["status", output],
        "aggregate": ["aggregate", "-i", output, "-o", merged],
        "profile": ["profile", output, "--allow-partial-rollouts"],
        "explain": ["explain", output],
        "story": ["explain", output, "0", "0"],
        "health-check": ["health-check", output],
    }
    others = {name: said(["eval", *words, "--json"]) for name, words in asked.items()}
    return {name: json.loads(answer.out) for name, answer in {"run": run, **others}.items()}


def test_every_document_says_its_version(documents):
    assert {name: document["schema_version"] for name, document in documents.items()} == dict.fromkeys(documents, 1)


def test_a_headline_is_the_same_document_in_a_run_a_status_and_an_aggregation(documents):
    run, status = documents["run"]["agents"][0], documents["status"]["runs"][0]["agents"][0]
    assert documents["aggregate"]["groups"][0]["headline"] == run["headline"]
    assert status["headline"] == run["headline"]
    assert run["headline"]["bounds"] == {"low": 0.75, "high": 1.0}
    assert (documents["aggregate"]["groups"][0]["agent"], status["agent"]) == (run["agent"], run["agent"])


def test_coverage_has_the_names_of_the_coverage_report_everywhere(documents):
    names = {"expected": 4, "scored": 3, "missing": 0}
    told = (documents["run"]["coverage"], documents["status"]["coverage"], documents["aggregate"])
    for coverage in told:
        assert {name: coverage[name] for name in names} == names
    (agent,) = documents["profile"]["agents"]
    assert (agent["expected"], agent["scored"], agent["masked"]) == (4, 3, 0)


def test_what_a_file_is_is_said_without_blanks(documents):
    for name in ("run", "aggregate", "profile"):
        assert not [key for key in documents[name]["files"] if " " in key]
    assert documents["run"]["files"]["materialized_inputs"].endswith("_materialized_inputs.jsonl")
