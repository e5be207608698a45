"""The order of times of what was there before, or comes from outside: a rename leaves a file the time at which it was last changed."""

import os
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable

from harness.supervision.recorder.nodes import ROOT, Holder, Node, Nodes

NEIGHBOURS_MAX = 1000
"""Beside more files a new one counts as the newest."""

Age = tuple[int, int]
"""When it was changed last, in nanoseconds, and the number of its node."""


def set_ages(items: Iterable[dict[str, object]], nodes: Nodes, real_path: Callable[[Holder], bytes]) -> None:
    """Say of each item which node was changed next after it (``older_than``); nothing of one that is the newest.

    Args:
        items: What has come, as the log will have it.
        nodes: All that is in the directory by now.
        real_path: Makes a path of ours.
    """
    by_number = {item["node"]: item for item in items}
    if not by_number:
        return
    found = nodes.all()
    known = [node for node in found if node.number not in by_number and node.number != ROOT]
    if len(known) > NEIGHBOURS_MAX:
        return
    ages = {node.number: _changed_ns(node, real_path) for node in found}
    younger: list[Age] = sorted((ages[node.number], node.number) for node in known)
    for age_ns, number in sorted(((ages[number], number) for number in ages if number in by_number), reverse=True):
        after = bisect_right(younger, (age_ns, 1 << 62))
        if after < len(younger):
            by_number[number]["older_than"] = younger[after][1]
        insort(younger, (age_ns, number))


def _changed_ns(node: Node, real_path: Callable[[Holder], bytes]) -> int:
    try:
        return os.lstat(real_path(node.names[0])).st_mtime_ns
    except OSError:
        return 0
