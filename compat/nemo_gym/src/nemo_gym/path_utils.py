"""Where a run keeps its files."""

from rollbook import (
    batch_status_path_for as batch_status_path_for,
    coverage_path_for as coverage_path_for,
    failures_path_for as failures_path_for,
    manifest_path_for as manifest_path_for,
    materialized_path_for as materialized_path_for,
)
