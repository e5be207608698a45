"""What machines use of a project's quotas.

Only the families that the guides and their kin use are known; of another machine type only the number at its end is, as vCPUs.

Source: https://docs.cloud.google.com/compute/docs/accelerator-optimized-machines, …/compute/resource-usage#gpu_quota
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

_BUILT_IN: Mapping[str, tuple[str, int, int]] = MappingProxyType(
    {
        "a2-highgpu": ("NVIDIA_A100", 12, 1),
        "a2-ultragpu": ("NVIDIA_A100_80GB", 12, 1),
        "a3-highgpu": ("NVIDIA_H100", 26, 1),
        "a3-megagpu": ("NVIDIA_H100_MEGA", 26, 1),
    }
)
"""Accelerator, vCPUs for each, and how many of them for each unit at the end of the machine type."""

_L4_OF_G2: Mapping[str, int] = MappingProxyType({"24": 2, "48": 4, "96": 8})
"""Of ``g2-standard-N``; all others have one."""

_SPECIAL_NAMES: Mapping[str, str] = MappingProxyType({"nvidia-tesla-a100": "NVIDIA_A100", "nvidia-h100-80gb": "NVIDIA_H100"})
"""Accelerators whose quota is not named after them."""


class Accelerator(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Accelerators that are attached to an instance."""

    accelerator_type: str
    accelerator_count: int = 1


def usage_of(machine_type: str, accelerators: Sequence[Accelerator], *, is_spot: bool) -> Counter[str]:
    """What an instance uses, by the name of the quota.

    Args:
        machine_type: Its name or address.
        accelerators: That are attached.
        is_spot: Whether it is Spot or preemptible: then its accelerators count against quotas of their own.
    """
    family, _, size = machine_type.rpartition("/")[2].rpartition("-")
    used: Counter[str] = Counter(INSTANCES=1)
    if family in _BUILT_IN and size.endswith("g") and size[:-1].isdecimal():
        name, cpus, each = _BUILT_IN[family]
        count = int(size[:-1])
        used[f"{name}_GPUS"] += count * each
        used["CPUS"] += count * cpus
    elif match := re.fullmatch(r"(\d{1,4})", size):
        used["CPUS"] += int(match.group(1))
        if family == "g2-standard":
            used["NVIDIA_L4_GPUS"] += _L4_OF_G2.get(size, 1)
    for accelerator in accelerators:
        used[f"{_quota_of(accelerator.accelerator_type)}_GPUS"] += accelerator.accelerator_count
    if is_spot:
        return Counter({f"PREEMPTIBLE_{name}" if name.endswith("_GPUS") else name: count for name, count in used.items()})
    return used


def gpus_in(used: Mapping[str, int]) -> int:
    """How many accelerators a usage has in all."""
    return sum(count for name, count in used.items() if name.endswith("_GPUS"))


def _quota_of(accelerator_type: str) -> str:
    name = accelerator_type.rpartition("/")[2]
    plain = name.removeprefix("nvidia-tesla-").removeprefix("nvidia-").replace("-", "_").upper()
    return _SPECIAL_NAMES.get(name, f"NVIDIA_{plain}")
