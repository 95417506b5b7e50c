"""What can be done in an office: the tools, their arguments, and what each changes.

Rules:
* A tool either does the whole of what it is asked or nothing, and then says why and what would do.
* Reading changes nothing: which mails were looked at is no part of an office's state.
* Texts are searched without regard to case; a search that is given several words finds what has all of them.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple

from resources_servers.office.arguments import (
    AddCustomer,
    AddCustomerNote,
    Arguments,
    CancelEvent,
    ChangeCustomer,
    ChangeEvent,
    CreateEvent,
    DeleteFile,
    FindFreeTime,
    ForwardMail,
    ListFiles,
    MoveFile,
    MoveMail,
    ReadCustomer,
    ReadFile,
    ReadMail,
    ReplyToMail,
    SearchCustomers,
    SearchEvents,
    SearchMail,
    SendMail,
    ShareFile,
    WriteFile,
)
from resources_servers.office.asking import (
    TIME,
    OfficeError,
    addresses,
    has_words,
    headed,
    known,
    listed,
    moment,
    path_in,
    span_of,
    time_in,
)
from resources_servers.office.records import Customer, Event, File, Mail, Office


def search_mail(office: Office, asked: SearchMail) -> dict[str, Any]:
    """Return the mails that fit, without their bodies."""
    fitting = [
        {"mail_id": name} | mail.model_dump(include={"folder", "sender", "subject", "sent_at"})
        for name, mail in office.mails.items()
        if has_words(f"{mail.subject} {mail.body}", asked.words)
        and asked.sender.casefold() in mail.sender.casefold()
        and asked.folder in (None, mail.folder)
    ]
    return listed("mails", sorted(fitting, key=lambda mail: (mail["sent_at"], mail["mail_id"]), reverse=True))


def read_mail(office: Office, asked: ReadMail) -> dict[str, Any]:
    """Return a mail."""
    return {"mail_id": asked.mail_id} | known(office.mails, asked.mail_id, "mail").model_dump()


def send_mail(office: Office, asked: SendMail) -> dict[str, Any]:
    """Put a mail into the folder of those that were sent."""
    name = office.next_id("mails", "m")
    office.mails[name] = Mail(
        folder="sent",
        sender=office.owner,
        to=addresses(asked.to),
        subject=asked.subject,
        body=asked.body,
        sent_at=office.now,
    )
    return {"mail_id": name, "sent": True}


def reply_to_mail(office: Office, asked: ReplyToMail) -> dict[str, Any]:
    """Send an answer to a mail's sender."""
    mail = known(office.mails, asked.mail_id, "mail")
    return send_mail(office, SendMail(to=[mail.sender], subject=headed("Re:", mail.subject), body=asked.body))


def forward_mail(office: Office, asked: ForwardMail) -> dict[str, Any]:
    """Send a mail on."""
    mail = known(office.mails, asked.mail_id, "mail")
    return send_mail(office, SendMail(to=asked.to, subject=headed("Fwd:", mail.subject), body=mail.body))


def move_mail(office: Office, asked: MoveMail) -> dict[str, Any]:
    """Put a mail into another folder."""
    known(office.mails, asked.mail_id, "mail").folder = asked.folder
    return {"mail_id": asked.mail_id, "folder": asked.folder}


def search_events(office: Office, asked: SearchEvents) -> dict[str, Any]:
    """Return the events that fit."""
    fitting = [
        {"event_id": name} | event.model_dump()
        for name, event in office.events.items()
        if has_words(event.title, asked.words)
        and event.start.startswith(asked.day)
        and asked.attendee.casefold() in " ".join(event.attendees).casefold()
    ]
    return listed("events", sorted(fitting, key=lambda event: (event["start"], event["event_id"])))


def create_event(office: Office, asked: CreateEvent) -> dict[str, Any]:
    """Put an event into the calendar."""
    event = Event(
        title=asked.title,
        start=time_in(asked.start),
        duration=asked.duration,
        attendees=addresses(asked.attendees),
    )
    name = office.next_id("events", "e")
    office.events[name] = event
    return {"event_id": name}


def change_event(office: Office, asked: ChangeEvent) -> dict[str, Any]:
    """Change what was given of an event."""
    event = known(office.events, asked.event_id, "event")
    changes = asked.model_dump(exclude={"event_id"}, exclude_none=True)
    if "start" in changes:
        changes["start"] = time_in(changes["start"])
    if "attendees" in changes:
        changes["attendees"] = addresses(changes["attendees"])
    for field, value in changes.items():
        setattr(event, field, value)
    return {"event_id": asked.event_id} | event.model_dump()


def cancel_event(office: Office, asked: CancelEvent) -> dict[str, Any]:
    """Take an event out of the calendar."""
    known(office.events, asked.event_id, "event")
    del office.events[asked.event_id]
    return {"event_id": asked.event_id, "cancelled": True}


def find_free_time(office: Office, asked: FindFreeTime) -> dict[str, Any]:
    """Return when some people are free first."""
    people = {person.casefold() for person in addresses(asked.attendees)}
    taken = sorted(
        span_of(event)
        for event in office.events.values()
        if event.start.startswith(asked.day) and people & {person.casefold() for person in event.attendees}
    )
    start, close = moment(f"{asked.day} 09:00"), moment(f"{asked.day} 17:00")
    needed = timedelta(minutes=asked.duration)
    for first, last in taken:
        if start + needed <= first:
            break
        start = max(start, last)
    return {"start": start.strftime(TIME) if start + needed <= close else None}


def list_files(office: Office, asked: ListFiles) -> dict[str, Any]:
    """Return the paths below a folder."""
    folder = asked.folder.strip("/")
    return {"paths": sorted(path for path in office.files if not folder or path.startswith(f"{folder}/"))}


def read_file(office: Office, asked: ReadFile) -> dict[str, Any]:
    """Return a file."""
    return {"path": asked.path} | known(office.files, asked.path, "file").model_dump()


def write_file(office: Office, asked: WriteFile) -> dict[str, Any]:
    """Write a file; one that is there stays shared."""
    before = office.files.get(path_in(asked.path))
    office.files[path_in(asked.path)] = File(text=asked.text, shared_with=before.shared_with if before else [])
    return {"path": path_in(asked.path), "new": before is None}


def move_file(office: Office, asked: MoveFile) -> dict[str, Any]:
    """Give a file another path, if that is free."""
    known(office.files, asked.path, "file")
    target = path_in(asked.target)
    if target in office.files:
        raise OfficeError(f"there is a file {target!r} already; choose another path or delete it first")
    office.files[target] = office.files.pop(asked.path)
    return {"path": target}


def delete_file(office: Office, asked: DeleteFile) -> dict[str, Any]:
    """Delete a file."""
    known(office.files, asked.path, "file")
    del office.files[asked.path]
    return {"path": asked.path, "deleted": True}


def share_file(office: Office, asked: ShareFile) -> dict[str, Any]:
    """Let people read a file."""
    file = known(office.files, asked.path, "file")
    file.shared_with = addresses([*file.shared_with, *asked.people])
    return {"path": asked.path, "shared_with": file.shared_with}


def search_customers(office: Office, asked: SearchCustomers) -> dict[str, Any]:
    """Return the customers that fit, without their notes."""
    fitting = [
        {"customer_id": name} | customer.model_dump(exclude={"notes"})
        for name, customer in office.customers.items()
        if asked.name.casefold() in customer.name.casefold()
        and asked.city.casefold() in customer.city.casefold()
        and asked.status in (None, customer.status)
    ]
    return listed("customers", fitting)


def read_customer(office: Office, asked: ReadCustomer) -> dict[str, Any]:
    """Return a customer."""
    return {"customer_id": asked.customer_id} | known(office.customers, asked.customer_id, "customer").model_dump()


def add_customer(office: Office, asked: AddCustomer) -> dict[str, Any]:
    """Add a customer whose address no other has."""
    (address,) = addresses([asked.email])
    if any(customer.email.casefold() == address.casefold() for customer in office.customers.values()):
        raise OfficeError(f"a customer with the address {address} is there already; search for it")
    name = office.next_id("customers", "c")
    office.customers[name] = Customer(name=asked.name, email=address, city=asked.city, status=asked.status, notes=[])
    return {"customer_id": name}


def change_customer(office: Office, asked: ChangeCustomer) -> dict[str, Any]:
    """Change one field of a customer."""
    before = known(office.customers, asked.customer_id, "customer")
    value = addresses([asked.value])[0] if asked.field == "email" else asked.value
    office.customers[asked.customer_id] = Customer.model_validate(before.model_dump() | {asked.field: value})
    return {"customer_id": asked.customer_id, asked.field: value}


def add_customer_note(office: Office, asked: AddCustomerNote) -> dict[str, Any]:
    """Note something about a customer."""
    known(office.customers, asked.customer_id, "customer").notes.append(asked.note)
    return {"customer_id": asked.customer_id, "noted": True}


class Tool(NamedTuple):
    """A tool: what it takes, and what it does."""

    arguments: type[Arguments]
    act: Callable[[Office, Any], dict[str, Any]]


TOOLS: Final[Mapping[str, Tool]] = {
    "search_mail": Tool(SearchMail, search_mail),
    "read_mail": Tool(ReadMail, read_mail),
    "send_mail": Tool(SendMail, send_mail),
    "reply_to_mail": Tool(ReplyToMail, reply_to_mail),
    "forward_mail": Tool(ForwardMail, forward_mail),
    "move_mail": Tool(MoveMail, move_mail),
    "search_events": Tool(SearchEvents, search_events),
    "create_event": Tool(CreateEvent, create_event),
    "change_event": Tool(ChangeEvent, change_event),
    "cancel_event": Tool(CancelEvent, cancel_event),
    "find_free_time": Tool(FindFreeTime, find_free_time),
    "list_files": Tool(ListFiles, list_files),
    "read_file": Tool(ReadFile, read_file),
    "write_file": Tool(WriteFile, write_file),
    "move_file": Tool(MoveFile, move_file),
    "delete_file": Tool(DeleteFile, delete_file),
    "share_file": Tool(ShareFile, share_file),
    "search_customers": Tool(SearchCustomers, search_customers),
    "read_customer": Tool(ReadCustomer, read_customer),
    "add_customer": Tool(AddCustomer, add_customer),
    "change_customer": Tool(ChangeCustomer, change_customer),
    "add_customer_note": Tool(AddCustomerNote, add_customer_note),
}
