"""Loads the fixtures that more than one folder of tests uses, and makes Hypothesis repeatable."""

from hypothesis import settings

pytest_plugins = ["support.kafka", "support.transcripts"]

# Another profile, e.g. for a long search by hand: pytest --hypothesis-profile=default.
settings.register_profile("ci", derandomize=True, deadline=None, database=None)
settings.load_profile("ci")
