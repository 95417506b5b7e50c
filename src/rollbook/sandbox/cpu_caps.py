"""Environment variables that keep libraries from starting a thread for every processor of the machine.

Rules:
* All of them say one number; a program reads those it knows.

Source: servers.md §9.4.
"""

from typing import Final

CPU_CAP_ENV_VARS: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMEXPR_MAX_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "TBB_NUM_THREADS",
    "JULIA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "RUST_TEST_THREADS",
    "CARGO_BUILD_JOBS",
    "GOMAXPROCS",
    "UV_THREADPOOL_SIZE",
    "CMAKE_BUILD_PARALLEL_LEVEL",
    "DJANGO_TEST_PROCESSES",
)


def cpu_cap_env(cpu: float | None) -> dict[str, str]:
    """Return every variable with the whole number of processors in `cpu`, at least 1; nothing for None."""
    if cpu is None:
        return {}
    return dict.fromkeys(CPU_CAP_ENV_VARS, str(max(1, int(cpu))))
