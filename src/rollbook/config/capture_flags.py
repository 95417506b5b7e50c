"""Which agents take part in the capture of token ids, as the top level of a configuration says.

Rules:
* Without the block `token_id_capture`, an agent's own flag decides; a block that is not enabled turns it off for all.

Source: servers.md §3.8, §11.2.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from rollbook.config.key_names import TOKEN_ID_CAPTURE_BLOCK


class CaptureFlags(NamedTuple):
    """Whether tokens are captured at all, and of every agent."""

    is_on: bool = True
    of_all_agents: bool = False

    def takes_part(self, own_flag: bool) -> bool:
        """Whether an agent whose own flag is `own_flag` takes part."""
        return self.is_on and (own_flag or self.of_all_agents)


_NO_BLOCK: Final = CaptureFlags()


def capture_flags(config: Mapping[str, Any] | None) -> CaptureFlags:
    """Return what the top level of `config` says."""
    block = None if config is None else config.get(TOKEN_ID_CAPTURE_BLOCK)
    if block is None or not hasattr(block, "get"):
        return _NO_BLOCK
    return CaptureFlags(block.get("enabled") is True, block.get("all_agents") is True)
