"""What number a text ends with."""

import re


def said_last(text: str) -> int | None:
    found = re.findall(r"\d+", text)
    return int(found[-1]) if found else None
