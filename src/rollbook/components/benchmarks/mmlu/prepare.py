"""MMLU's test questions: from the published archive, or the folder that it unpacks to, to rows with four options.

Rules:
* A subject's file is `test/<subject>_test.csv`: question, four options and a letter, without a line of names.
* Subjects come in the order of their names, and questions in that of their file; a question's id is `subject/number`.
* An archive is read and not unpacked; what else lies in it is not looked at.

Source: Hendrycks et al. 2021, "Measuring Massive Multitask Language Understanding".
"""

import os
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rollbook import (
    CACHE_DIR,
    InputError,
    PublishedFile,
    PublishedRow,
    prepared_rows,
    published_csv_rows,
    write_prepared_rows,
)

PUBLISHED: Final = PublishedFile(
    "mmlu", "https://people.eecs.berkeley.edu/~hendrycks/data.tar", 256 << 20, ("data/test", "test")
)
ROWS: Final = 14042
LETTERS: Final = "ABCD"
_COLUMNS: Final = ("question", *LETTERS, "answer")
_TEST: Final = re.compile(r"(?:.*/)?test/(?P<subject>\w+)_test\.csv")
_MOST_BYTES: Final = 16 << 20


def prepare(
    jsonl_fpath: str | os.PathLike[str] = CACHE_DIR / "benchmarks" / "mmlu" / "mmlu.jsonl",
    source: str | None = None,
    expected_rows: int | None = ROWS,
    subjects: list[str] | None = None,
) -> Path:
    """Write the data set and return its path; `source` is the published archive, or a folder with its test files.

    `subjects` are those to take, with as many rows as they have; all where it is not given.

    Raises:
        InputError: the files are not to be had, or are not what was published.

    """
    files = dict(sorted(test_files(_place(source, jsonl_fpath))))
    unknown = sorted({*(subjects or ())} - {subject for subject, _ in files})
    if unknown:
        raise InputError(f"mmlu: no subject {unknown[0]!r}; there are {', '.join(subject for subject, _ in files)}")
    rows = [
        row
        for (subject, label), content in files.items()
        if not subjects or subject in subjects
        for row in rows_of(subject, label, content)
    ]
    return write_prepared_rows(jsonl_fpath, rows, None if subjects else expected_rows)


def test_files(place: Path) -> Iterator[tuple[tuple[str, str], bytes]]:
    """Yield the files of the test questions: subject and name, and what is in them.

    Raises:
        InputError: there are none, or the archive cannot be read.

    """
    files = _in_folder(place) if place.is_dir() else _in_archive(place)
    count = 0
    for count, file in enumerate(files, start=1):  # noqa: B007  it is looked at below
        yield file
    if not count:
        raise InputError(f"{place}: it holds no test/<subject>_test.csv; fetch {PUBLISHED.address} again")


def rows_of(subject: str, label: str, content: bytes) -> list[dict[str, object]]:
    """Return the rows of a subject's file.

    Raises:
        InputError: lines that are none.

    """
    rows = prepared_rows(published_csv_rows(content, label, _COLUMNS), row_of)
    return [{"id": f"{subject}/{at}", **row, "subject": subject} for at, row in enumerate(rows)]


def row_of(published: PublishedRow) -> dict[str, object]:
    """Return the row of a published one, but for what its file says of it.

    Raises:
        InputError: it is none.

    """
    answer = published.text("answer").strip()
    if len(answer) != 1 or answer not in LETTERS:
        raise published.fault(f"the answer is {answer!r}, and no letter of {LETTERS}")
    options = {letter: str(published.fields[letter]).strip() for letter in LETTERS}
    return {
        "question": published.text("question").strip(),
        "options_text": "\n".join(f"{letter}: {text}" for letter, text in options.items()),
        "options": [{letter: text} for letter, text in options.items()],
        "expected_answer": answer,
    }


def _place(source: str | None, jsonl_fpath: str | os.PathLike[str]) -> Path:
    """Return the archive, or the folder of the test files; a folder that is named may be that itself."""
    if source is not None and any(Path(source).glob("*_test.csv")):
        return Path(source)
    return PUBLISHED.found(source, jsonl_fpath)


def _in_folder(folder: Path) -> Iterator[tuple[tuple[str, str], bytes]]:
    for path in sorted(folder.glob("*_test.csv")):
        yield (path.name.removesuffix("_test.csv"), str(path)), path.read_bytes()


def _in_archive(path: Path) -> Iterator[tuple[tuple[str, str], bytes]]:
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                matched = _TEST.fullmatch(member.name)
                if matched is None or Path(member.name).name.startswith("."):
                    continue
                if not member.isfile() or member.size > _MOST_BYTES:
                    raise InputError(f"{path}: {member.name} is no file of a subject; fetch it again")
                file = archive.extractfile(member)
                yield (matched["subject"], f"{path}:{member.name}"), b"" if file is None else file.read()
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(f"{path}: no archive that can be read: {error}; fetch it again") from error
