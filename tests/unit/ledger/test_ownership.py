import pytest

from rollbook.errors import LedgerError
from rollbook.ledger.ownership import journal_path_for, resolve_rollout_owner, resolve_rollout_path

HISTORY = [
    "{}_failures.jsonl",
    "{}_materialized_inputs.jsonl",
    "{}_manifest.json",
    "{}_manifest.log",
    "{}_attempts.jsonl",
]
PROOFS = HISTORY[2:]
DERIVED = ["{}_coverage.json", "{}_aggregate_metrics.json", "{}_batch_status.json"]
COMPANIONS = HISTORY[:2]


def make(folder, *names):
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text("")
    return folder / names[0]


def history(stem):
    return [name.format(stem) for name in HISTORY[:4]]


@pytest.fixture
def run(tmp_path):
    """A complete run in a folder of its own."""
    return make(tmp_path / "run", "r.jsonl", *history("r"))


@pytest.fixture
def alias(tmp_path, run):
    """A link to the run's output, beside nothing."""
    (tmp_path / "names").mkdir()
    link = tmp_path / "names" / "latest.jsonl"
    link.symlink_to(run)
    return link


def test_the_journal_lies_beside_its_output(tmp_path):
    assert journal_path_for(tmp_path / "r.jsonl") == tmp_path / "r_attempts.jsonl"


@pytest.mark.parametrize("proof", PROOFS)
@pytest.mark.parametrize("companion", COMPANIONS)
def test_a_companion_belongs_to_the_output_whose_history_lies_beside_it(tmp_path, companion, proof):
    path = make(tmp_path, companion.format("r"), proof.format("r"))
    assert resolve_rollout_owner(path) == tmp_path / "r.jsonl"


@pytest.mark.parametrize("derived", ["r.jsonl", *(name.format("r") for name in DERIVED)])
@pytest.mark.parametrize("companion", COMPANIONS)
def test_without_a_manifest_or_journal_a_file_is_its_own(tmp_path, companion, derived):
    path = make(tmp_path, companion.format("r"), derived)
    assert resolve_rollout_owner(path) == path


@pytest.mark.parametrize("proof", PROOFS)
def test_an_output_with_a_history_of_its_own_owns_it_whatever_its_name(tmp_path, proof):
    path = make(tmp_path, "r_failures.jsonl", proof.format("r_failures"), "r.jsonl", "r_manifest.json")
    assert resolve_rollout_owner(path) == path


@pytest.mark.parametrize(
    "name", ["r.jsonl", "r_coverage.json", "r_failures.json", "_failures.jsonl", "rfailures.jsonl"]
)
def test_a_name_that_is_no_companions_is_its_own(tmp_path, name):
    path = make(tmp_path, name, "r_manifest.json", "_manifest.json")
    assert resolve_rollout_owner(path) == path


@pytest.mark.parametrize(
    ("outputs", "owner"), [(["r.out"], "r.out"), (["r.out", "r.jsonl"], "r.jsonl"), (["r.out", "r.txt"], "r.jsonl")]
)
def test_an_output_may_be_named_otherwise_when_it_is_the_only_one(tmp_path, outputs, owner):
    path = make(tmp_path, "r_failures.jsonl", "r_manifest.json", *outputs)
    assert resolve_rollout_owner(path) == tmp_path / owner


@pytest.mark.parametrize("read_only", [True, False])
def test_an_output_that_is_no_link_is_where_it_is(run, read_only):
    assert resolve_rollout_path(run, read_only) == run


@pytest.mark.parametrize("read_only", [True, False])
def test_an_output_that_does_not_exist_yet_is_where_it_will_be(tmp_path, read_only):
    assert resolve_rollout_path(tmp_path / "new" / "r.jsonl", read_only) == tmp_path / "new" / "r.jsonl"


@pytest.mark.parametrize("read_only", [True, False])
def test_a_folder_that_is_a_link_splits_nothing(tmp_path, run, read_only):
    (tmp_path / "link").symlink_to(run.parent)
    assert resolve_rollout_path(tmp_path / "link" / "r.jsonl", read_only) == tmp_path / "link" / "r.jsonl"


@pytest.mark.parametrize("read_only", [True, False])
def test_a_link_leads_to_the_output_with_its_history(run, alias, read_only):
    assert resolve_rollout_path(alias, read_only) == run


@pytest.mark.parametrize("read_only", [True, False])
def test_links_to_every_file_lead_to_the_run(run, alias, read_only):
    for own, other in zip(history("latest"), history("r"), strict=True):
        (alias.parent / own).symlink_to(run.parent / other)
    assert resolve_rollout_path(alias, read_only) == run


@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("read_only", [True, False])
def test_a_derived_report_beside_a_link_proves_nothing(run, alias, derived, read_only):
    make(alias.parent, derived.format("latest"))
    assert resolve_rollout_path(alias, read_only) == run


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("name", HISTORY)
def test_a_history_in_two_places_is_refused_and_both_are_named(run, alias, name, read_only):
    stray = make(alias.parent, name.format("latest"))
    with pytest.raises(LedgerError) as raised:
        resolve_rollout_path(alias, read_only)
    assert (str(stray) in str(raised.value), str(run) in str(raised.value)) == (True, True)


@pytest.mark.parametrize("name", HISTORY)
def test_a_history_beside_the_link_alone_is_read_there_and_not_gone_on_with(tmp_path, name):
    target = make(tmp_path / "run", "r.jsonl")
    make(tmp_path / "names", name.format("latest"))
    link = tmp_path / "names" / "latest.jsonl"
    link.symlink_to(target)
    assert resolve_rollout_path(link, read_only=True) == link
    with pytest.raises(LedgerError, match="part of its history lies elsewhere"):
        resolve_rollout_path(link)


@pytest.mark.parametrize("gone", [True, False])
def test_a_history_that_is_linked_from_elsewhere_is_read_and_not_gone_on_with(tmp_path, run, gone):
    failures = run.with_name("r_failures.jsonl")
    failures.unlink()
    if not gone:
        make(tmp_path, "far.jsonl")
    failures.symlink_to(tmp_path / "far.jsonl")
    assert resolve_rollout_path(run, read_only=True) == run
    with pytest.raises(LedgerError, match=r"r_failures\.jsonl"):
        resolve_rollout_path(run)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_link_that_leads_to_itself_is_refused(tmp_path, read_only):
    (tmp_path / "r.jsonl").symlink_to(tmp_path / "r.jsonl")
    with pytest.raises(LedgerError, match="leads nowhere"):
        resolve_rollout_path(tmp_path / "r.jsonl", read_only)
