"""What Cloud Run cannot be made to do, refused before anything is made, with the field and the reason."""

from collections.abc import Iterator, Mapping, Sequence

from harness.capabilities import Launch
from harness.cloud_run.environment import check_texts
from harness.errors import InvalidDocumentError
from harness.targets.gcp.deployment import GPU_TIMEOUT_S_MAX, TIMEOUT_S_MAX
from harness.targets.gcp.job_volumes import AGENT_AT
from harness.targets.gcp.place import Place
from harness.targets.gcp.secrets import is_secret_name, redact

ENVIRONMENT_BYTES_MAX = 32 << 10
"""Of one variable. Source: https://docs.cloud.google.com/run/quotas (environment variables)."""

VARIABLES_MAX = 1000
"""Likewise."""

MEMORY_MIB_MIN, MEMORY_MIB_MAX = 512, 32 << 10
"""Of a task on the second generation environment. Source: https://docs.cloud.google.com/run/docs/configuring/jobs/memory-limits"""


def check_launch(launch: Launch, place: Place, *, is_emulated: bool) -> None:
    """See that Cloud Run would take a launch.

    Raises:
        InvalidDocumentError: Naming the field that it would not.
    """
    if is_emulated:
        check_texts(launch)  # jobs run as processes in their directory
    _check_timeout(launch, place, is_emulated=is_emulated)
    if not (launch.image or place.image or is_emulated) and not place.job:
        _refuse(launch, "image", "is named nowhere, and no job is adopted", "name one in the workload, or [gcp] image")
    if launch.memory_mib and not MEMORY_MIB_MIN <= launch.memory_mib <= MEMORY_MIB_MAX:
        wanted = f"{MEMORY_MIB_MIN} to {MEMORY_MIB_MAX} MiB are granted in the second generation environment, which a mounted bucket needs"
        _refuse(launch, "platform.memory_mib", f"is {launch.memory_mib}", wanted)
    if len(launch.environment) > VARIABLES_MAX:
        _refuse(launch, "environment", f"has {len(launch.environment)} variables", f"a container takes {VARIABLES_MAX}")
    if not is_emulated:
        check_credentials(launch)
    for name, value in launch.environment.items():
        if len(value.encode()) > ENVIRONMENT_BYTES_MAX:
            _refuse(launch, "environment", f"{name} is longer than {ENVIRONMENT_BYTES_MAX} bytes", "put it into a file")
    if any(part == AGENT_AT or part.startswith(f"{AGENT_AT}/") for part in launch.command):
        _refuse(launch, "command", f"names {AGENT_AT}, where the agent is mounted", "keep it elsewhere in the image")


def check_credentials(launch: Launch) -> None:
    """See that no credential would be in the definition of what runs.

    Raises:
        InvalidDocumentError: Naming the field that has one.
    """
    for field, problem in credentials_in(launch.environment, launch.command):
        _refuse(launch, field, problem, "give it to the adopted job from Secret Manager, and take it out of the workload")


def credentials_in(environment: Mapping[str, str], command: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each field of a workload that has a credential, with what is wrong; the credential itself is not told.

    What a job is made of is kept in the project's audit logs, for longer than any run.
    Source: https://cloud.google.com/logging/docs/audit#admin-activity (request bodies of calls that change something; 400 days).
    """
    kept = "in the definition of a job it is kept in the project's audit logs"
    for name, value in environment.items():
        if value and is_secret_name(name):
            yield "environment", f"{name} is named like a credential; {kept}"
        elif redact(value) != value:
            yield "environment", f"the value of {name} looks like a credential; {kept}"
    for number, part in enumerate(command):
        option = command[number - 1] if number and command[number - 1].startswith("-") else ""
        if redact(part) != part or redact(f"{option} {part}") != f"{redact(option)} {part}":
            yield "command", f"argument {number} looks like a credential; {kept}"


def _check_timeout(launch: Launch, place: Place, *, is_emulated: bool) -> None:
    longest_s = GPU_TIMEOUT_S_MAX if place.gpus else TIMEOUT_S_MAX
    if launch.timeout_s > longest_s:
        with_gpu = " with a GPU" if place.gpus else ""
        _refuse(launch, "platform.timeout_s", f"is {launch.timeout_s:g}", f"a task{with_gpu} is given {longest_s:g} s at most")
    if not is_emulated and launch.timeout_s < 1:
        _refuse(launch, "platform.timeout_s", f"is {launch.timeout_s:g}", "a task on a project is given whole seconds, one at least")


def _refuse(launch: Launch, field: str, problem: str, advice: str) -> None:
    raise InvalidDocumentError(document=launch.job, field=field, problem=problem, advice=advice)
