"""A verifier tried on answers whose reward is known."""

from rollbook import (
    VerifierFixture as VerifierFixture,
    exercise_verifier_fixture as exercise_verifier_fixture,
)
