"""The import names of NeMo Gym, answered by Rollbook.

Rules:
* Every module here is a list of aliases: what a name does is decided by Rollbook's public name of that meaning.
* Where the distribution `nemo-gym` is installed, importing this package is an error that says so.
* A class is resolved when it is first asked for: importing the package is cheap.

Source: servers.md §1.1, §13.3.
"""

import rollbook
from rollbook import (
    CACHE_DIR as CACHE_DIR,
    RESULTS_DIR as RESULTS_DIR,
    ROOT_DIR as ROOT_DIR,
    WORKING_DIR as WORKING_DIR,
    __version__ as __version__,
)

PARENT_DIR = rollbook.component_root()
__package_name__ = "nemo_gym"

rollbook.refuse_to_shadow("nemo-gym", "rollbook-nemo-gym")

__getattr__ = rollbook.__getattr__
