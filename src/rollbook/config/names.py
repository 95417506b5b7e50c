"""The words that a configuration gives a meaning to.

Rules:
* A reserved key is never taken for a server, whether or not this product acts on it.
* The four server types are also the names of the folders that hold implementations.

Source: servers.md §1.4, §1.5, §1.7.
"""

from typing import Final

RESOURCES_SERVERS: Final = "resources_servers"
AGENTS: Final = "responses_api_agents"
MODELS: Final = "responses_api_models"
ENVIRONMENT_SERVERS: Final = "environment_servers"
SERVER_TYPES: Final = (RESOURCES_SERVERS, AGENTS, MODELS, ENVIRONMENT_SERVERS)

POLICY_MODEL: Final = "policy_model"
DUMMY_MODEL: Final = "dummy_model"
LEGACY_AGENT: Final = "legacy_agent"
MISSING: Final = "???"

NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME: Final = "NEMO_GYM_CONFIG_DICT"
NEMO_GYM_CONFIG_PATH_ENV_VAR_NAME: Final = "NEMO_GYM_CONFIG_PATH"
EXTRA_ROOTS_ENV_VAR_NAMES: Final = ("NEMO_GYM_EXTRA_ROOTS", "ROLLBOOK_EXTRA_ROOTS")
ALLOW_UNSUPPORTED_PAIRING_ENV_VAR_NAME: Final = "NEMO_GYM_ALLOW_UNSUPPORTED_PAIRING"

CONFIG_PATHS_KEY: Final = "config_paths"
HEAD_SERVER_KEY: Final = "head_server"
INHERIT_KEY: Final = "_inherit_from"
COPY_KEY: Final = "_copy"
DELETE_KEY: Final = "_delete_key"
AGENT_MAP_KEY: Final = "agent_map"
AGENT_NAME_KEY: Final = "agent_name"
FAN_OUT_KEY: Final = "fan_out"
ERROR_ON_ALMOST_SERVERS_KEY: Final = "error_on_almost_servers"
ERROR_ON_AGENT_WITHOUT_ENVIRONMENT_SERVER_KEY: Final = "error_on_agent_without_environment_server"
ALLOW_UNSUPPORTED_PAIRING_KEY: Final = "allow_unsupported_pairing"
ISOLATE_KEY: Final = "isolate"
IGNORE_REQUIREMENTS_KEY: Final = "ignore_requirements"

RESERVED_KEYS: Final = frozenset(
    {
        "config_paths",
        "entrypoint",
        "default_host",
        "head_server",
        "disallowed_ports",
        "head_server_deps",
        "python_version",
        "pip_install_verbose",
        "use_absolute_ip",
        "uv_pip_set_python",
        "skip_venv_if_present",
        "hf_token",
        "ray_head_node_address",
        "port_range_low",
        "port_range_high",
        "dry_run",
        "server_spinup_timeout_seconds",
        "model_endpoint_readiness_timeout_seconds",
        "allow_openai_version_skew",
        "uv_cache_dir",
        "uv_lock_timeout_seconds",
        "uv_venv_dir",
        "results_dir",
        "cache_dir",
        "_inherit_from",
        "_copy",
        "nemo_gym_log_dir",
        "verbose",
        "json",
        "query",
        "observability_enabled",
        "model_call_capture_dir",
        "token_id_capture",
        "component_name",
        "skip_verification",
        "skip_verification_reward",
        "telemetry",
        "allow_unsupported_pairing",
        "environment_server_name",
        "environment_server_routes",
        "environment_routing_mode",
        ISOLATE_KEY,
        IGNORE_REQUIREMENTS_KEY,
    }
)
