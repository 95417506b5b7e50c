"""GPQA's diamond questions: from the published file to rows with four options in an order of their own.

Rules:
* The order of a question's options follows from the seed, its id and their texts, and from nothing else: it is the same
  on every machine, whatever other rows there are.
* The file is published in an archive with a password, which its authors tell; what they ask is that the questions
  are not put on the net in plain text.

Source: Rein et al. 2023, "GPQA: A Graduate-Level Google-Proof Q&A Benchmark".
"""

import hashlib
import os
import zipfile
import zlib
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

FILE: Final = "gpqa_diamond.csv"
PUBLISHED: Final = PublishedFile(
    "gpqa_diamond", "https://raw.githubusercontent.com/idavidrein/gpqa/main/dataset.zip", 32 << 20, (FILE,)
)
ROWS: Final = 198
SEED: Final = 0
LETTERS: Final = "ABCD"
_WRONG: Final = ("Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")
_MOST_BYTES: Final = 32 << 20
_IS_ENCRYPTED: Final = 1


def prepare(
    jsonl_fpath: str | os.PathLike[str] = CACHE_DIR / "benchmarks" / "gpqa_diamond" / "gpqa_diamond.jsonl",
    source: str | None = None,
    expected_rows: int | None = ROWS,
    seed: int = SEED,
    password: str | None = None,
) -> Path:
    """Write the data set and return its path; `source` is the published archive, the CSV in it, or their folder.

    `password` opens the archive; the README of its repository tells it.

    Raises:
        InputError: the file is not to be had, or is not what was published.

    """
    content, label = read(PUBLISHED.found(source, jsonl_fpath), password)
    rows = prepared_rows(published_csv_rows(content, label), lambda published: row_of(published, seed))
    return write_prepared_rows(jsonl_fpath, rows, expected_rows)


def row_of(published: PublishedRow, seed: int = SEED) -> dict[str, object]:
    """Return the row of a published one.

    Raises:
        InputError: it is none.

    """
    own_id, right = published.text("Record ID").strip(), published.text("Correct Answer").strip()
    texts = shuffled([right, *(published.text(name).strip() for name in _WRONG)], f"{seed}:{own_id}")
    options = dict(zip(LETTERS, texts, strict=True))
    return {
        "id": own_id,
        "question": published.text("Question").strip(),
        "options_text": "\n".join(f"{letter}: {text}" for letter, text in options.items()),
        "options": [{letter: text} for letter, text in options.items()],
        "expected_answer": LETTERS[texts.index(right)],
        "metadata": {"subset_for_metrics": published.text("High-level domain").strip()},
    }


def shuffled(texts: list[str], key: str) -> list[str]:
    """Return texts in an order that follows from `key` and from them."""
    return sorted(texts, key=lambda text: hashlib.sha256(f"{key}:{text}".encode()).digest())


def read(path: Path, password: str | None) -> tuple[bytes, str]:
    """Return what the CSV holds, and what it is called in messages.

    Raises:
        InputError: the archive cannot be read, or not without a password.

    """
    if not zipfile.is_zipfile(path):
        return path.read_bytes(), str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _unzipped(archive, path, password)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, zlib.error) as error:
        raise InputError(f"{path}: no archive that can be read: {error}; fetch it again") from error


def _unzipped(archive: zipfile.ZipFile, path: Path, password: str | None) -> tuple[bytes, str]:
    found = [entry for entry in archive.infolist() if Path(entry.filename).name == FILE and entry.file_size]
    if len(found) != 1:
        raise InputError(f"{path}: it holds {len(found) or 'no'} {FILE}; fetch it again")
    entry = found[0]
    if entry.file_size > _MOST_BYTES:
        raise InputError(f"{path}: {entry.filename} is {entry.file_size} bytes long; this is another file")
    if entry.flag_bits & _IS_ENCRYPTED and not password:
        raise InputError(
            f"{path}: it has a password, which the README of https://github.com/idavidrein/gpqa tells; give it: "
            "+prepare_script_args.password=PASSWORD"
        )
    try:
        return archive.read(entry, password.encode() if password else None), f"{path}:{entry.filename}"
    except RuntimeError as error:
        raise InputError(f"{path}: the password does not open it: {error}") from error
