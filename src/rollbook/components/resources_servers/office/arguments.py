"""What the tools of an office take; the docstrings and descriptions are what a model reads."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from resources_servers.office.records import Folder, Status


class Arguments(BaseModel):
    """The arguments of a tool."""

    model_config = ConfigDict(extra="forbid")


class SearchMail(Arguments):
    """Find mails, newest first, by words, sender and folder."""

    words: str = Field("", description="Words that subject or body have.")
    sender: str = Field("", description="Part of the sender's address.")
    folder: Folder | None = Field(None, description="The folder to look in.")


class ReadMail(Arguments):
    """Read one mail."""

    mail_id: str = Field(description="The mail's id, such as m-001.")


class SendMail(Arguments):
    """Send a mail."""

    to: list[str] = Field(description="The addresses of those who get it.", min_length=1)
    subject: str = Field(description="The subject.")
    body: str = Field(description="The text.")


class ReplyToMail(Arguments):
    """Answer a mail; the subject is that of the mail with Re: before it."""

    mail_id: str = Field(description="The mail's id.")
    body: str = Field(description="The text.")


class ForwardMail(Arguments):
    """Forward a mail as it is; the subject gets Fwd: before it."""

    mail_id: str = Field(description="The mail's id.")
    to: list[str] = Field(description="The addresses of those who get it.", min_length=1)


class MoveMail(Arguments):
    """Move a mail to another folder; bin is where deleted mails are."""

    mail_id: str = Field(description="The mail's id.")
    folder: Folder = Field(description="The folder.")


class SearchEvents(Arguments):
    """Find events, earliest first, by words, day and attendee."""

    words: str = Field("", description="Words that the title has.")
    day: str = Field("", description="The day, as YYYY-MM-DD.")
    attendee: str = Field("", description="Part of an attendee's address.")


class CreateEvent(Arguments):
    """Put an event into the calendar."""

    title: str = Field(description="The title.")
    start: str = Field(description="When it starts, as YYYY-MM-DD HH:MM.")
    duration: int = Field(description="How many minutes it takes.", ge=1, le=1440)
    attendees: list[str] = Field(description="The addresses of those who come.")


class ChangeEvent(Arguments):
    """Change an event; what is left out stays."""

    event_id: str = Field(description="The event's id, such as e-001.")
    title: str | None = Field(None, description="The new title.")
    start: str | None = Field(None, description="When it starts now, as YYYY-MM-DD HH:MM.")
    duration: int | None = Field(None, description="How many minutes it takes now.", ge=1, le=1440)
    attendees: list[str] | None = Field(None, description="The addresses of those who come now.")


class CancelEvent(Arguments):
    """Take an event out of the calendar."""

    event_id: str = Field(description="The event's id.")


class FindFreeTime(Arguments):
    """Find the first time of a day, between 09:00 and 17:00, at which none of some people has an event."""

    day: str = Field(description="The day, as YYYY-MM-DD.")
    duration: int = Field(description="How many minutes are needed.", ge=1, le=480)
    attendees: list[str] = Field(description="Their addresses.", min_length=1)


class ListFiles(Arguments):
    """List the files of a folder and those below it."""

    folder: str = Field("", description="The folder, such as contracts; the top folder without one.")


class ReadFile(Arguments):
    """Read a file."""

    path: str = Field(description="Its path, such as contracts/ferry.txt.")


class WriteFile(Arguments):
    """Write a file: a new one, or all of one that is there."""

    path: str = Field(description="Its path.")
    text: str = Field(description="All of its text.")


class MoveFile(Arguments):
    """Give a file another path."""

    path: str = Field(description="Its path.")
    target: str = Field(description="Its path from now on.")


class DeleteFile(Arguments):
    """Delete a file."""

    path: str = Field(description="Its path.")


class ShareFile(Arguments):
    """Let people read a file."""

    path: str = Field(description="Its path.")
    people: list[str] = Field(description="Their addresses.", min_length=1)


class SearchCustomers(Arguments):
    """Find customers by name, city and status."""

    name: str = Field("", description="Part of the name.")
    city: str = Field("", description="Part of the city's name.")
    status: Status | None = Field(None, description="The status.")


class ReadCustomer(Arguments):
    """Read everything about a customer."""

    customer_id: str = Field(description="The customer's id, such as c-001.")


class AddCustomer(Arguments):
    """Add a customer."""

    name: str = Field(description="The name.")
    email: str = Field(description="The address.")
    city: str = Field(description="The city.")
    status: Status = Field("lead", description="The status.")


class ChangeCustomer(Arguments):
    """Change one field of a customer."""

    customer_id: str = Field(description="The customer's id.")
    field: Literal["name", "email", "city", "status"] = Field(description="The field.")
    value: str = Field(description="What it holds from now on.")


class AddCustomerNote(Arguments):
    """Note something about a customer."""

    customer_id: str = Field(description="The customer's id.")
    note: str = Field(description="The note.")
