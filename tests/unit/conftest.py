"""Hypothesis in the unit tests: no deadline, for a busy machine is no failure, and a third of the usual examples, for there are many tests."""

from hypothesis import settings

settings.register_profile("unit", deadline=None, max_examples=30)
settings.load_profile("unit")
