"""Memory of a task and the CPUs that Cloud Run grants it with: a job whose limits do not fit one another is not taken.

Source: https://docs.cloud.google.com/run/docs/configuring/jobs/memory-limits (CPUs for so much memory),
    https://docs.cloud.google.com/run/docs/configuring/jobs/cpu (memory for so many CPUs), https://docs.cloud.google.com/run/docs/configuring/jobs/gpu
"""

from collections.abc import Mapping

from harness.errors import UsageError

CPU, MEMORY, GPU = "cpu", "memory", "nvidia.com/gpu"

GPU_TYPE = "nvidia-l4"
"""Where none is named."""

MEMORY_MIB_OF_CPUS: Mapping[int, tuple[int, int]] = {
    1: (512, 4 << 10),
    2: (512, 8 << 10),
    4: (2 << 10, 16 << 10),
    6: (4 << 10, 24 << 10),
    8: (4 << 10, 32 << 10),
}
"""The least and the most memory with so many CPUs, in MiB."""

ASKED_CPUS = (1, 2, 4, 8)
"""What is asked for: six are of the page about CPUs, and not of the field's own text (run_v2.types.ResourceRequirements.limits)."""

LEAST_OF_GPUS: Mapping[str, tuple[int, int]] = {"nvidia-l4": (4, 16 << 10), "nvidia-rtx-pro-6000": (20, 80 << 10)}
"""CPUs and memory, in MiB, that a task with such a GPU has at least."""


def limits_of_made(memory_mib: int, *, gpus: int = 0, gpu_type: str = "") -> dict[str, str]:
    """The limits of a job that is made: as little as there is with so much memory, or with the GPU. Nothing asked for: Cloud Run's own.

    Raises:
        UsageError: When nothing that Cloud Run grants fits.
    """
    cpus, least_mib = LEAST_OF_GPUS.get(gpu_type or GPU_TYPE, (0, 0)) if gpus else (0, 0)
    if gpus and 0 < memory_mib < least_mib:
        raise UsageError(f"platform.memory_mib is {memory_mib}, and a task with a {gpu_type or GPU_TYPE} has at least {least_mib} MiB")
    wanted_mib = memory_mib or least_mib
    limits = {MEMORY: f"{wanted_mib}Mi"} if wanted_mib else {}
    cpus = max(cpus, cpus_for(wanted_mib))
    if cpus > 1:
        limits[CPU] = str(cpus)
    return {**limits, GPU: str(gpus)} if gpus else limits


def limits_of_copy(limits: Mapping[str, str], memory_mib: int, *, gpu_type: str = "") -> dict[str, str]:
    """The limits of a copy of a job that shall have so much memory: more CPUs where that much needs them, never fewer.

    Raises:
        UsageError: When the job's CPUs or its GPU do not go with so little: with other ones it would be another job.
    """
    if not memory_mib:
        return dict(limits)
    least_cpus, least_mib = LEAST_OF_GPUS.get(gpu_type or GPU_TYPE, (0, 0)) if limits.get(GPU, "0") != "0" else (1, 0)
    cpus = _cpus(limits[CPU]) if CPU in limits else least_cpus
    least_mib = max(least_mib, MEMORY_MIB_OF_CPUS.get(int(cpus), (0, 0))[0])
    if memory_mib < least_mib:
        has = f"{limits[GPU]} GPU of type {gpu_type or GPU_TYPE} and " if GPU in limits else ""
        raise UsageError(
            f"platform.memory_mib is {memory_mib}, and the adopted job's {has}{cpus:g} CPUs come with at least {least_mib} MiB"
        )
    needed = cpus_for(memory_mib)
    more = {CPU: str(needed)} if needed > cpus else {}
    return {**limits, **more, MEMORY: f"{memory_mib}Mi"}


def cpus_for(memory_mib: int) -> int:
    """The fewest CPUs with which so much memory is granted; the most that there are where none is enough."""
    return next((cpus for cpus in ASKED_CPUS if memory_mib <= MEMORY_MIB_OF_CPUS[cpus][1]), ASKED_CPUS[-1])


def _cpus(text: str) -> float:
    """A number of CPUs, of a job that Cloud Run has taken."""
    return float(text.removesuffix("m")) / 1000 if text.endswith("m") else float(text)
