"""The field's names for keys of a configuration and of a row, as code beside a server asks for them.

Rules:
* A name stands for the key itself; what a key means is said where it is read.
* Code of ours takes the key from the module that reads it; these are for the code of others.

Source: servers.md §1.7, §8.1.
"""

from typing import Final

from rollbook.records.keys import AGENT_REF_KEY, SKILLS_REF_KEY, TASK_SOURCE_KEY

AGENT_REF_KEY_NAME: Final = AGENT_REF_KEY
TASK_SOURCE_KEY_NAME: Final = TASK_SOURCE_KEY
SKILLS_REF_KEY_NAME: Final = SKILLS_REF_KEY

CACHE_DIR_KEY_NAME: Final = "cache_dir"
DISALLOWED_PORTS_KEY_NAME: Final = "disallowed_ports"
HF_TOKEN_KEY_NAME: Final = "hf_token"  # noqa: S105  the name of a key, not a token
MODEL_CALL_CAPTURE_DIR_KEY_NAME: Final = "model_call_capture_dir"
OBSERVABILITY_ENABLED_KEY_NAME: Final = "observability_enabled"
RESULTS_DIR_KEY_NAME: Final = "results_dir"
TOKEN_ID_CAPTURE_BLOCK: Final = "token_id_capture"  # noqa: S105  as above

ROLLOUT_PATH_PREFIX: Final = "ng-rollout"
TOKEN_CAPTURE_PATH_SEGMENT: Final = "training-token-capture"  # noqa: S105  a part of a path
