"""How long properties are looked for: a busy machine is no failure, and `--hypothesis-profile nightly` looks longer.

Runs that tests start hear a SIGHUP, also where the tests themselves were started by `nohup`.
"""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "nightly",
    settings.get_profile("suite"),
    max_examples=10_000,
    stateful_step_count=25,
    print_blob=True,
)
settings.load_profile("suite")
signal.signal(signal.SIGHUP, signal.SIG_DFL)
