"""Where an output can lie: told before anything is computed, in words that say what to type.

Rules:
* Nothing is made or written.
"""

from pathlib import Path

from rollbook.errors import LedgerError


def refuse_no_file(output: Path, asked_by: str = "--output") -> None:
    """Refuse an output, which `asked_by` asks for, that is a folder, or lies in what is none.

    Raises:
        LedgerError: it is one of them.

    """
    if output.is_dir():
        raise LedgerError(f"{output} is a folder; give a file name, for example {output}/r.jsonl")
    refuse_no_folder(output.parent, asked_by)


def refuse_no_folder(folder: Path, asked_by: str = "--output") -> None:
    """Refuse a folder that is a file, or lies below one.

    Raises:
        LedgerError: it is one of them.

    """
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise LedgerError(f"{path} is a file, and can hold no other; give another {asked_by}")
