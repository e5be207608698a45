"""Figures and names as words: every number on a page is made here, so that they read alike."""

import re

from harness.verdict import counted

NONE = "–"
"""Shown where there is no figure."""

_SPELLED = {
    "sigkill": "SIGKILL",
    "sigterm": "SIGTERM",
    "jax": "JAX",
    "ray": "Ray",
    "orbax": "Orbax",
    "io": "I/O",
    "cpu": "CPU",
    "gpu": "GPU",
    "tpu": "TPU",
    "api": "API",
    "dws": "DWS",
    "kueue": "Kueue",
    "kuberay": "KubeRay",
    "rayjob": "RayJob",
    "rayjobs": "RayJobs",
    "raycluster": "RayCluster",
}
"""Words that the names of scenarios write small."""

_JOINED = {
    "bit exactly": "bit-exactly",
    "on demand": "on-demand",
    "start up": "start-up",
    "coordinators pod": "coordinator's pod",
    "guides queue": "guide's queue",
    "guides two": "guide's two",
    "jobs retries": "job's retries",
}
"""What loses its hyphen or its apostrophe in the names of our scenarios."""


def duration(seconds: float | None) -> str:
    """Seconds with the digits that a reader can use: ``0.4 ms``, ``35 ms``, ``1.35 s``, ``73.0 s``, ``12 min 05 s``, ``3 h 20 min``."""
    if seconds is None:
        return NONE
    sign, length = ("−" if seconds < 0 else ""), abs(seconds)
    if length < 0.00005:
        return "0 s"
    if length < 0.00995:
        return f"{sign}{length * 1000:.1f} ms"
    if length < 0.0995:
        return f"{sign}{length * 1000:.0f} ms"
    if length < 9.995:
        return f"{sign}{length:.2f} s"
    if length < 119.95:
        return f"{sign}{length:.1f} s"
    minutes, rest = divmod(round(length), 60)
    if minutes < 120:
        return f"{sign}{minutes} min {rest:02d} s"
    return f"{sign}{minutes // 60:,} h {minutes % 60:02d} min"


def limit(seconds: float) -> str:
    """A length that somebody chose, without digits that nobody wrote: ``10 s``, ``6 h``."""
    if seconds >= 3600 and seconds % 3600 == 0:
        return f"{seconds / 3600:g} h"
    return f"{seconds:g} s"


def moment(t_s: float) -> str:
    """A moment of the run, to the millisecond."""
    return f"{t_s:,.3f}"


def share(part: float, whole: float) -> str:
    """A part as a percentage."""
    if whole <= 0:
        return NONE
    ratio = part / whole
    return f"{ratio:.1%}" if 0.0005 <= ratio < 0.0995 or 0.9995 > ratio >= 0.9945 else f"{ratio:.0%}"


def size(count: int) -> str:
    """Bytes: ``512 B``, ``7.9 kB``, ``1.2 GB``."""
    amount, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"


count = counted
"""The words of checkers and those of pages read alike."""


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``3rd``, ``11th``."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def sentence(name: str) -> str:
    """A kebab-case name as a sentence."""
    words = " ".join(_SPELLED.get(word, word) for word in re.split(r"[-_]+", name) if word)
    for lost, whole in _JOINED.items():
        words = re.sub(rf"\b{lost}\b", whole, words)
    return words[:1].upper() + words[1:]
