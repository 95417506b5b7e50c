"""The constraint that a text is written in one language.

Rules:
* The language is found by the package `langdetect`; a text that it finds none in passes, as in the reference.
* Without the package such a constraint cannot be judged, and says so.

Source: Zhou et al. 2023.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Final

from resources_servers.instruction_following.reading import Check, Options
from rollbook import MissingPackageError

LONGEST: Final = 10_000


def response_language(text: str, options: Options) -> bool:
    """The text is written in the language whose code is asked.

    Raises:
        MissingPackageError: `langdetect` is not installed.

    """
    if find_spec("langdetect") is None:
        raise MissingPackageError("the constraint language:response_language needs a package: pip install langdetect")
    langdetect = import_module("langdetect")

    langdetect.DetectorFactory.seed = 0
    try:
        return bool(langdetect.detect(text[:LONGEST]) == options["language"])
    except langdetect.LangDetectException:
        return True


CHECKS: Final[dict[str, Check]] = {"language:response_language": response_language}
