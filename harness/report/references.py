"""What a scenario's reason refers to, for a reader who has the page and not the project's documents."""

import re

CASES = "docs/cases.md of chaos-harness"
GUIDE_B = "https://docs.cloud.google.com/kubernetes-engine/docs/tutorials/ray-kueue-dws"

_REFERENCES = (
    (r"\bfindings? \d+", f"A finding by number is a measurement of the project's own: {CASES}, under Findings."),
    (r"\bcases? \d+", f"A case by number is a public report of what broke: {CASES}."),
    (r"\bguide B\b", f"Guide B is {GUIDE_B}: RayJobs on TPUs; plan A is on-demand nodes, plan B DWS flex-start."),
    (r"\bCloud Run guide\b", "The Cloud Run guide is Google's tutorial of a long GPU job on Cloud Run jobs that survives maintenance."),
)


def references_of(why: str) -> tuple[str, ...]:
    """A sentence on each kind of thing that a reason names."""
    return tuple(told for pattern, told in _REFERENCES if re.search(pattern, why))
