"""How much of the machine a sandbox takes."""

from rollbook.sandbox import (
    CPU_CAP_ENV_VARS as CPU_CAP_ENV_VARS,
    cpu_cap_env as cpu_cap_env,
    rewrite_image as rewrite_image,
)
