"""What is kept of a command line: everything but its secrets."""

import pytest

from rollbook.api.provenance import masked_command
from rollbook.cli.resume_command import resume_command
from rollbook.config.overrides import parse_overrides
from rollbook.recovery.credentials import MARKER


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("+policy={api_key:sk-secret123,model:x}", f"+policy={{api_key:'{MARKER}',model:x}}"),
        ("+policy={a: [{api_key: sk-1}], n: 1, on: true}", f"+policy={{a:[{{api_key:'{MARKER}'}}],n:1,on:true}}"),
        ("+policy={keys: [sk-1]}", f"+policy={{keys:'{MARKER}'}}"),
        ("+p={u: 'https://me:pw@host/v1?token=x'}", f"+p={{u:'https://{MARKER}@host/v1?token={MARKER}'}}"),
        ("++p.extra_headers.x-auth=topsecret", f"++p.extra_headers.x-auth={MARKER}"),
        ("++p.extra_headers={X: topsecret}", f"++p.extra_headers={MARKER}"),
        ("+p.secret.value=s1", f"+p.secret.value={MARKER}"),
        ("+p.args=[--api-key,sk-9]", f"+p.args=['--api-key','{MARKER}']"),
        ("+keys=[sk-1]", f"+keys={MARKER}"),
        ("+p={api_key:sk-1", f"+p={MARKER}"),
        ("+p=[{api_key:sk-1]", f"+p={MARKER}"),
        ("--api-key=sk-3", f"--api-key={MARKER}"),
        ("+u=https://me:pw@host/x", f"+u=https://{MARKER}@host/x"),
    ],
)
def test_a_secret_in_an_override_is_replaced_in_whatever_shape_it_was_typed(word, shown):
    assert list(masked_command([word])) == [shown]
    assert "sk-" not in resume_command(["gym", word])


@pytest.mark.parametrize(
    "word", ["+policy={model: x, max_output_tokens: 5}", "+p.args=[--seed, 1]", "+a.label_key=x", "run", "+a=", "~a"]
)
def test_a_word_without_a_secret_stays_as_it_was_typed(word):
    assert list(masked_command([word])) == [word]


def test_the_argument_of_a_flag_that_names_a_credential_is_replaced():
    assert list(masked_command(["--api-key", "{sk=1}", "--seed", "1"])) == ["--api-key", MARKER, "--seed", "1"]


def test_what_is_shown_of_a_structure_can_be_typed_again():
    word = "+p={key: sk-1, a: 'it\\'s', b: 'true', c: '1', d: [null, 0.5, 'x y', w/o], e: {}}"
    (shown,) = masked_command([word])
    (before,), (after,) = parse_overrides([word]), parse_overrides([shown])
    assert after.value == before.value | {"key": MARKER}
