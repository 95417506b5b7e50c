"""How long properties are looked for: `--hypothesis-profile nightly` looks longer."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "nightly",
    max_examples=10_000,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
