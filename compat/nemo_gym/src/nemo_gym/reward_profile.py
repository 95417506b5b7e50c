"""Rewards turned into metrics."""

from rollbook import (
    AggregateMetrics as AggregateMetrics,
    AggregateMetricsMixin as AggregateMetricsMixin,
    AggregateMetricsRequest as AggregateMetricsRequest,
    RewardProfile as RewardProfile,
    RewardProfiler as RewardProfiler,
    add_avg_sample_std_dev as add_avg_sample_std_dev,
    compute_aggregate_metrics as compute_aggregate_metrics,
    compute_pass_majority_metrics as compute_pass_majority_metrics,
    compute_subset_metrics as compute_subset_metrics,
    highest_k_metrics as highest_k_metrics,
)
