"""Loading the engine of a verb.

Rules:
* The garbage collector rests meanwhile, and what was loaded stays out of its sight: it would be gone through many
  times, and nothing of it is ever garbage.
* Our own models are made without pydantic's plugins, which are looked for in every installed package; the models of
  components are made later, with them.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_PLUGINS_OFF: Final = "PYDANTIC_DISABLE_PLUGINS"


@contextmanager
def loading() -> Iterator[None]:
    """Load modules in this block."""
    was_on, plugins = gc.isenabled(), os.environ.get(_PLUGINS_OFF)
    gc.disable()
    os.environ[_PLUGINS_OFF] = "__all__"
    try:
        yield
    finally:
        _set_back(plugins)
        gc.freeze()
        if was_on:
            gc.enable()


def _set_back(plugins: str | None) -> None:
    if plugins is None:
        del os.environ[_PLUGINS_OFF]
    else:
        os.environ[_PLUGINS_OFF] = plugins
