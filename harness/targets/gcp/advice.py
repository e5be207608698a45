"""The commands that messages advise: as the command line says them, for they must work as they stand; else the usual ones."""

import os
from collections.abc import Mapping

PLANNING_VARIABLE, CLEANING_VARIABLE = "HARNESS_GCP_PLANNING", "HARNESS_GCP_CLEANING"
"""The commands that plan anew and that clean, for the processes that make runs."""

CLEANING = "harness clean --target gcp"


def planning(environment: Mapping[str, str] = os.environ) -> str:
    """What makes a plan of the same, to be read in a sentence."""
    return f"`{environment.get(PLANNING_VARIABLE) or 'harness run --target gcp --plan'}`"


def planning_anew() -> str:
    """Advice where a plan holds no more."""
    return f"make a new one with {planning()}, and read it"


def cleaning(environment: Mapping[str, str] = os.environ) -> str:
    """What removes the rest of a run, as the subject of a sentence."""
    said = environment.get(CLEANING_VARIABLE, "")
    return f"`{said}`" if said else f"`{CLEANING}` with the same --config, or --project, --region and --bucket,"


def cleaning_of(bucket: str, environment: Mapping[str, str] = os.environ) -> str:
    """What removes the rest of a run that works with another bucket, likewise."""
    return f"`{environment.get(CLEANING_VARIABLE) or CLEANING} --bucket {bucket}`"
