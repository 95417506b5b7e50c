"""An XML document, read as a value.

Rules:
* An element without children and attributes is its text, without the white space around it, and null when it has none.
* Any other is an object: children by their names, in a list where a name occurs again, attributes as `@name`, text as
  `#text`.
* A document type is refused, and with it every entity but XML's own.
"""

from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat


@dataclass(slots=True)
class _Element:
    fields: dict[str, Any] = field(default_factory=dict)
    again: set[str] = field(default_factory=set)
    text: list[str] = field(default_factory=list)

    def add(self, name: str, value: Any) -> None:
        if name in self.again:
            self.fields[name].append(value)
        elif name in self.fields:
            self.fields[name] = [self.fields[name], value]
            self.again.add(name)
        else:
            self.fields[name] = value

    def value(self) -> Any:
        text = "".join(self.text).strip()
        if not self.fields:
            return text or None
        return self.fields | ({"#text": text} if text else {})


def read_xml(text: str, deepest: int) -> dict[str, Any]:
    """Return an object whose one key is the name of the root element.

    Raises:
        ValueError: the text is no XML document, has a document type, or elements nested deeper than `deepest`.

    """
    document = [_Element()]

    def start(name: str, attributes: dict[str, str]) -> None:
        del name
        if len(document) > deepest:
            raise ValueError("elements are nested too deeply")
        document.append(_Element({f"@{key}": value for key, value in attributes.items()}))

    def end(name: str) -> None:
        value = document.pop().value()
        document[-1].add(name, value)

    def say(text: str) -> None:
        document[-1].text.append(text)

    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = say
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(text.encode(), True)  # noqa: FBT003  the last piece, by position alone
    except expat.ExpatError as error:
        raise ValueError(f"no XML: {error}") from error
    return document[0].fields


def _refuse(*_: Any) -> None:
    raise ValueError("a document type is not read")
