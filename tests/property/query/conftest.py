"""Hypothesis without deadlines: a time limit per example says nothing on shared cores."""

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
