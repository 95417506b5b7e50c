"""The resolved configuration, and the names of its keys."""

from omegaconf import DictConfig as DictConfig, OmegaConf as OmegaConf
from rollbook import (
    AGENT_REF_KEY_NAME as AGENT_REF_KEY_NAME,
    ATTEMPT_INDEX_KEY_NAME as ATTEMPT_INDEX_KEY_NAME,
    CACHE_DIR_KEY_NAME as CACHE_DIR_KEY_NAME,
    DISALLOWED_PORTS_KEY_NAME as DISALLOWED_PORTS_KEY_NAME,
    HF_TOKEN_KEY_NAME as HF_TOKEN_KEY_NAME,
    OBSERVABILITY_ENABLED_KEY_NAME as OBSERVABILITY_ENABLED_KEY_NAME,
    RESULTS_DIR_KEY_NAME as RESULTS_DIR_KEY_NAME,
    ROLLOUT_ID_KEY_NAME as ROLLOUT_ID_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME as ROLLOUT_INDEX_KEY_NAME,
    SKILLS_REF_KEY_NAME as SKILLS_REF_KEY_NAME,
    TASK_INDEX_KEY_NAME as TASK_INDEX_KEY_NAME,
    TASK_SOURCE_KEY_NAME as TASK_SOURCE_KEY_NAME,
    TOKEN_ID_CAPTURE_BLOCK as TOKEN_ID_CAPTURE_BLOCK,
    GlobalConfigDictParser as GlobalConfigDictParser,
    GlobalConfigDictParserConfig as GlobalConfigDictParserConfig,
    find_open_port as find_open_port,
    get_first_server_config_dict as get_first_server_config_dict,
    get_global_config_dict as get_global_config_dict,
    get_hf_token as get_hf_token,
    maybe_get_global_config_dict as maybe_get_global_config_dict,
    set_global_config_dict as set_global_config_dict,
)
