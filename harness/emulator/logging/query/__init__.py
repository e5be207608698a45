"""The Logging query language: a filter as text becomes a tree, and a tree says of an entry whether it matches.

Source: https://docs.cloud.google.com/logging/docs/view/logging-query-language
"""

from harness.emulator.logging.query.bounds import TimeBounds, find_time_bounds
from harness.emulator.logging.query.matching import matches
from harness.emulator.logging.query.parsing import FilterError, parse_filter
from harness.emulator.logging.query.subjects import Subject, find_subjects, subjects_of
from harness.emulator.logging.query.syntax import Expression

__all__ = [
    "Expression",
    "FilterError",
    "Subject",
    "TimeBounds",
    "find_subjects",
    "find_time_bounds",
    "matches",
    "parse_filter",
    "subjects_of",
]
