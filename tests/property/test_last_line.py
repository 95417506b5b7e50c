"""The last line of a file, whole or torn or damaged: what is counted is what a resume leaves, and nothing else."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollbook.ledger import reader
from rollbook.ledger.projection import BOM
from rollbook.ledger.reader import plain_blocks, plain_lines, read_lines, scan, scan_whole
from rollbook.ledger.tail import repair_tail, torn_of, whole_bytes

ROW = b'{"_ng_task_index":0,"reward":1.0}\n'
LONGEST = 48
READERS = {
    "scan": lambda path: [(line.number, line.offset) for line in scan(path)],
    "scan_whole": lambda path: [(line.number, line.offset) for line in scan_whole(path)],
    "plain_lines": lambda path: [line[:2] for line in plain_lines(path)],
    "plain_blocks": lambda path: list(_in_blocks(path)),
}
VALUES = [b'{"x":"y{}[]\\"\\\\"}', b'["q","w"]', b'"\xc3\xa9"', b'"\\ud83d"', b"null", b"1.5", b"[]"]
DAMAGED = [b'"\x00\x00"', b'"\xff\xff"', b'"\xc3"', b"[tru nul 01]", b"[" * 1100 + b"]" * 1100, b'{"a" 1}', b'"\\x"']
KEYS = [b"response", b"responses_create_params", b"ng_trajectory", b"res\\u0070onse", b"note"]


def _in_blocks(path):
    for block in plain_blocks(path):
        offset = block.offset
        for step, (length, text) in enumerate(zip(block.lengths, block.texts, strict=True)):
            if not text.isspace():
                yield block.number + step, offset
            offset += length


@st.composite
def last_lines(draw):
    """Return a row without its newline: whole, cut anywhere, or with damage inside of a value; short or long."""
    value = draw(st.sampled_from(VALUES + DAMAGED))
    padding = b"a" * draw(st.sampled_from([0, 1, 40, 200]))
    row = b'{"%s":[%s,"%s"],"reward":1.0}' % (draw(st.sampled_from(KEYS)), value, padding)
    row = row[: draw(st.sampled_from([len(row)] * 3 + [len(row) - 1, len(row) // 2, 1, 0]))]
    return (
        draw(st.sampled_from([b"", b" ", BOM, BOM + BOM])) + row + draw(st.sampled_from([b"", b"\r", b" ", b"}", b"x"]))
    )


def counted(path):
    """Return the lines that every reader counts, of which there is one opinion."""
    found = {name: read(path) for name, read in READERS.items()}
    assert len(set(map(str, found.values()))) == 1, found
    assert [number for number, _ in read_lines(path)] == [number for number, _ in found["scan"]]
    return found["scan"]


def agreed(data):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rollouts.jsonl"
        path.write_bytes(data)
        before, whole = counted(path), whole_bytes(path)
        repair_tail(path)
        after = counted(path)
        assert after == before
        kept = path.read_bytes()
        assert len(kept) == whole
        assert (kept if not torn_of(path).exists() else kept + torn_of(path).read_bytes()) in {data, data + b"\n"}
        return before


@given(before=st.sampled_from([b"", BOM, ROW, BOM + ROW, ROW + b" \n", ROW * 3]), last=last_lines())
@example(before=ROW, last=b'{"response":"' + b"a" * 200 + b'\x00","reward":1.0}')
@example(before=BOM, last=ROW.rstrip())
@example(before=ROW, last=BOM + ROW.rstrip())
def test_what_is_counted_of_a_last_line_without_its_newline_is_what_a_resume_leaves(before, last):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reader, "_LONGEST", LONGEST)
        patched.setattr(reader, "_PIECE", LONGEST // 2)
        patched.setattr(reader, "_BLOCK", LONGEST)
        agreed(before + last)
    agreed(before + last)


@pytest.mark.parametrize("damage", [b"", b"\x00" * 4096, b"\xff"])
def test_damage_anywhere_in_a_huge_last_line_leaves_it_out_for_all(damage):
    bulk = b'"' + b"a" * (9 << 20) + damage + b'"'
    assert len(agreed(ROW + b'{"response":{"x":' + bulk + b'},"reward":1.0}')) == (1 if damage else 2)
