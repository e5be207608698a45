"""Scenarios as data: frozen, validated on construction and on reading, to and from JSON. No input or output but documents."""

from harness.scenario.cluster import Cluster, Phase, PoolAnswer, ProvisioningScript
from harness.scenario.documents import convert, decode, encode, read_scenario, read_schedule, read_toml, schema
from harness.scenario.expectations import Expectation, name_of
from harness.scenario.faults import Fault, kind_of
from harness.scenario.model import Injection, Scenario, Schedule, Victim, injection_name
from harness.scenario.platform import GRACE_PROFILES, GraceProfile, Platform, grace_profile
from harness.scenario.triggers import Trigger
from harness.scenario.workload import Layout, LogPatterns, Outside, Workload

__all__ = [
    "GRACE_PROFILES",
    "Cluster",
    "Expectation",
    "Fault",
    "GraceProfile",
    "Injection",
    "Layout",
    "LogPatterns",
    "Outside",
    "Phase",
    "Platform",
    "PoolAnswer",
    "ProvisioningScript",
    "Scenario",
    "Schedule",
    "Trigger",
    "Victim",
    "Workload",
    "convert",
    "decode",
    "encode",
    "grace_profile",
    "injection_name",
    "kind_of",
    "name_of",
    "read_scenario",
    "read_schedule",
    "read_toml",
    "schema",
]
