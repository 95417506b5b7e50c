"""Names for JSON that has been decoded and not yet been given a type.

Rules:
* A `JsonObject` is built or read at an edge; a room's own values are frozen dataclasses.
"""

from collections.abc import Mapping

JsonObject = dict[str, object]
JsonMapping = Mapping[str, object]
