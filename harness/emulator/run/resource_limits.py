"""How much CPU, memory and GPU a container may ask for.

Assumed: the words of the refusals. A value that is not given is not judged beside a GPU: what the service fills in there is not known.

Source: https://docs.cloud.google.com/run/docs/configuring/jobs/cpu, …/jobs/memory-limits, …/jobs/gpu
"""

import re
from collections.abc import Mapping
from fractions import Fraction

from harness.emulator.failures import invalid_argument

CPU, MEMORY, GPU = "cpu", "memory", "nvidia.com/gpu"

MIB, GIB = 1 << 20, 1 << 30
MEMORY_DEFAULT, MEMORY_MIN = 512 * MIB, 512 * MIB
"""The least of the second generation of the execution environment, which jobs run in."""
CPU_DEFAULT, CPU_MIN = Fraction(1), Fraction("0.08")

MEMORY_OF_CPUS: Mapping[int, tuple[int, int]] = {
    1: (MEMORY_MIN, 4 * GIB),
    2: (MEMORY_MIN, 8 * GIB),
    4: (2 * GIB, 16 * GIB),
    6: (4 * GIB, 24 * GIB),
    8: (4 * GIB, 32 * GIB),
}
"""The least and the most memory with so many CPUs; no other numbers above one are granted."""

LEAST_OF_GPUS: Mapping[str, tuple[int, int]] = {"nvidia-l4": (4, 16 * GIB), "nvidia-rtx-pro-6000": (20, 80 * GIB)}
"""The accelerators that there are, with the CPUs and the memory that each needs at least."""

_QUANTITY = re.compile(r"(?P<number>\d{1,12}(?:\.\d{1,9})?)(?P<unit>Ki|Mi|Gi|Ti|k|M|G|T|m)?", re.ASCII)
_UNITS = {"Ki": 1 << 10, "Mi": MIB, "Gi": GIB, "Ti": 1 << 40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def check_limits(limits: Mapping[str, str], *, accelerator: str, field: str) -> None:
    """See that a container may have such limits.

    Raises:
        ApiError: INVALID_ARGUMENT, naming the limit.
    """
    for name in limits:
        if name not in (CPU, MEMORY, GPU):
            raise invalid_argument(field, f"'{name}' is not supported: only {CPU}, {MEMORY} and {GPU} are")
    has_gpu = limits.get(GPU, "0") != "0"
    if limits.get(GPU, "0") not in ("0", "1"):
        raise invalid_argument(field, f"{GPU}: must be '1', got '{limits[GPU]}'")
    cpus = _quantity(limits, CPU, field)
    memory = _quantity(limits, MEMORY, field)
    if memory is not None and memory < MEMORY_MIN:
        raise invalid_argument(field, f"{MEMORY}: must be at least 512Mi, got '{limits[MEMORY]}'")
    if has_gpu:
        _check_beside_gpu(limits, cpus, memory, accelerator=accelerator, field=field)
    else:
        _check_together(CPU_DEFAULT if cpus is None else cpus, Fraction(MEMORY_DEFAULT) if memory is None else memory, field)


def check_accelerator(accelerator: str, *, field: str) -> None:
    """See that there is such an accelerator.

    Raises:
        ApiError: INVALID_ARGUMENT.
    """
    if accelerator and accelerator not in LEAST_OF_GPUS:
        raise invalid_argument(field, f"'{accelerator}' is not supported: must be one of {', '.join(LEAST_OF_GPUS)}")


def _check_beside_gpu(limits: Mapping[str, str], cpus: Fraction | None, memory: Fraction | None, *, accelerator: str, field: str) -> None:
    least_cpus, least_memory = LEAST_OF_GPUS.get(accelerator, (0, 0))
    if cpus is not None and cpus < least_cpus:
        raise invalid_argument(field, f"{CPU}: a GPU of type {accelerator} needs at least {least_cpus}, got '{limits[CPU]}'")
    if memory is not None and memory < least_memory:
        raise invalid_argument(
            field, f"{MEMORY}: a GPU of type {accelerator} needs at least {least_memory // GIB}Gi, got '{limits[MEMORY]}'"
        )
    if cpus is not None and memory is not None and least_cpus <= max(MEMORY_OF_CPUS):
        _check_together(cpus, memory, field)


def _check_together(cpus: Fraction, memory: Fraction, field: str) -> None:
    if cpus < 1:
        if cpus < CPU_MIN or (cpus < Fraction("0.5") and memory > 512 * MIB) or memory > GIB:
            raise invalid_argument(
                field, f"{CPU}: {float(cpus):g} is too little: from 0.08 on, from 0.5 on above 512Mi of memory, from 1 on above 1Gi"
            )
        return
    if cpus.denominator != 1 or int(cpus) not in MEMORY_OF_CPUS:
        raise invalid_argument(field, f"{CPU}: must be below 1, or one of 1, 2, 4, 6, 8; got {float(cpus):g}")
    least, most = MEMORY_OF_CPUS[int(cpus)]
    if not least <= memory <= most:
        raise invalid_argument(
            field, f"{MEMORY}: for {cpus} CPU it must be between {least // MIB}Mi and {most // MIB}Mi, got {float(memory / MIB):g}Mi"
        )


def _quantity(limits: Mapping[str, str], name: str, field: str) -> Fraction | None:
    """A limit as a number of CPUs or of bytes; None where it is not given."""
    text = limits.get(name)
    if text is None:
        return None
    match = _QUANTITY.fullmatch(text)
    unit = (match["unit"] or "") if match is not None else ""
    if match is None or (name == CPU and unit not in ("", "m")) or (name == MEMORY and unit == "m"):
        raise invalid_argument(field, f"{name}: '{text}' is no quantity")
    number = Fraction(match["number"])
    return number / 1000 if unit == "m" else number * _UNITS.get(unit, 1)
