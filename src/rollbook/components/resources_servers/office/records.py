"""What an office holds: mails, events, files and customers, each under an id of its own.

Rules:
* The office that every session starts with is one file; a session's changes touch no other session's office.
* What is made in a session gets the next free number of its kind, so that the same calls make the same office.
"""

from functools import cache
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

SEED: Final = Path(__file__).parent / "data" / "office.json"
Folder = Literal["inbox", "sent", "archive", "bin"]
Status = Literal["lead", "active", "paused", "closed"]


class Entry(BaseModel):
    """One thing of the office."""

    model_config = ConfigDict(extra="forbid")


class Mail(Entry):
    """A mail. `sent_at` is `YYYY-MM-DD HH:MM`."""

    folder: Folder
    sender: str
    to: list[str]
    subject: str
    body: str
    sent_at: str


class Event(Entry):
    """An event of the calendar. `start` is `YYYY-MM-DD HH:MM`, `duration` is in minutes."""

    title: str
    start: str
    duration: int
    attendees: list[str]


class File(Entry):
    """A text file, by its path; `shared_with` are addresses."""

    text: str
    shared_with: list[str]


class Customer(Entry):
    """A customer."""

    name: str
    email: str
    city: str
    status: Status
    notes: list[str]


class Office(Entry):
    """The state of an office. `now` is `YYYY-MM-DD HH:MM`, `owner` the address of whose office it is."""

    now: str
    owner: str
    mails: dict[str, Mail]
    events: dict[str, Event]
    files: dict[str, File]
    customers: dict[str, Customer]

    def next_id(self, kind: str, letter: str) -> str:
        """Return the next free id of a kind, such as `m-031`."""
        taken = [int(name.partition("-")[2]) for name in getattr(self, kind)]
        return f"{letter}-{max(taken, default=0) + 1:03}"


def opened() -> Office:
    """Return an office as every session finds it."""
    return Office.model_validate_json(_seed())


@cache
def _seed() -> bytes:
    return SEED.read_bytes()
