"""Entries of a cluster, read as the time-line of one job: its workload, its pods, and what befell the nodes they were on.

A job is told by its name: Kueue calls its workload ``job-NAME-12345`` or ``rayjob-NAME-12345``, its pods carry its name in a label. What
is of nobody, as a stockout of the autoscaler or a broken machine, counts for every job that it can have hit.

Source: kueue, pkg/controller/jobframework (names of workloads); https://docs.cloud.google.com/kubernetes-engine/docs/concepts/about-logs
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from harness.history import AttemptStarted, ClusterEventSeen, Event, JobEvent, LogLine, PoolScaled, ProvisioningSeen, WorkloadSeen
from harness.incidents.cluster_events import AUDIT_PREFIX, EVENTS_LOG, VISIBILITY_LOG, ObjectStates, concerned_by, events_in, instance_of
from harness.incidents.cluster_words import is_known
from harness.incidents.entries import Entry, Export
from harness.incidents.sightings import Seen, UnknownEntries, in_order
from harness.incidents.timeline import AttemptStory, Timeline
from harness.incidents.timestamps import NANOSECONDS
from harness.incidents.words import JobWords, WordReader

CONTAINER = "k8s_container"
JOB_LABELS = ("k8s-pod/batch_kubernetes_io/job-name", "k8s-pod/job-name")
RAY_LABEL = "k8s-pod/ray_io/cluster"
INDEX_LABEL = "k8s-pod/batch_kubernetes_io/job-completion-index"
NODE_LABELS = ("compute.googleapis.com/resource_name", "k8s-node")

_WORKLOAD = re.compile(r"(?:job|rayjob|raycluster|jobset)-(?P<name>.+)-[0-9a-f]{5}")
_RAY_SUFFIX = re.compile(r"-(?:raycluster-)?[a-z0-9]{5}$")
_ASSIGNED = re.compile(r"^Successfully assigned \S{1,300} to (?P<node>\S{1,300})")
_OUTPUT: Mapping[str, Literal["stdout", "stderr"]] = {"stdout": "stdout", "stderr": "stderr"}
_JOB_KINDS = ("Job", "RayJob", "JobSet")
_SHARED_KINDS = ("Node", "Instance")


def job_of(entry: Entry) -> str:
    """The job that an entry names: by its object, its workload, or the label of its pod; empty where it names none."""
    if entry.resource_type == CONTAINER:
        named = next((entry.labels[label] for label in JOB_LABELS if entry.labels.get(label)), "")
        return named or _RAY_SUFFIX.sub("", entry.labels.get(RAY_LABEL, ""))
    kind, name = concerned_by(entry)
    if kind in _JOB_KINDS:
        return name
    match = _WORKLOAD.fullmatch(name) if kind == "Workload" else None
    return match["name"] if match is not None else name if kind == "Workload" else ""


def is_of_cluster(entry: Entry) -> bool:
    """Whether an entry is of a kind that is read here."""
    return entry.resource_type.startswith(("k8s_", "gke_", "gce_")) or entry.log in (EVENTS_LOG, VISIBILITY_LOG)


def read_job(export: Export, job: str, words: JobWords) -> Timeline:
    """The time-line of a job that the export holds; what happened to the cluster before the first word of it is none of its business."""
    jobs = sorted({name for entry in export.entries if (name := job_of(entry))}, key=len, reverse=True)
    reading = _Reading(job=job, others=tuple(name for name in jobs if name != job), words=words)
    entries = [entry for entry in export.entries if is_of_cluster(entry)]
    mine = [entry for entry in entries if reading.is_mine(entry)]
    reading.epoch_ns = mine[0].t_ns if mine else export.entries[0].t_ns
    for entry in mine:
        reading.note_nodes(entry)
    for entry in entries:
        reading.read(entry)
    stories = reading.stories()
    seen = in_order([*reading.seen, *(each for story in stories for each in story.seen)])
    return Timeline(
        platform="kubernetes",
        name=job,
        job=job,
        epoch_ns=reading.epoch_ns,
        export_end_ns=export.entries[-1].t_ns,
        seen=tuple(_numbered(seen, reading.admitted_ns)),
        attempts=tuple(stories),
        words=words,
        unknown=reading.unknown,
        entry_count=len(mine),
        unplaced_count=export.malformed_kinds,
    )


def _numbered(seen: Sequence[Seen], admitted_ns: Sequence[int]) -> Iterator[Seen]:
    """Objects of the job with the attempt that was current when they were seen."""
    for each in seen:
        if isinstance(each.event, WorkloadSeen | ProvisioningSeen):
            attempt = max(0, sum(t_ns <= each.entry.t_ns for t_ns in admitted_ns) - 1)
            yield Seen(msgspec.structs.replace(each.event, attempt=attempt), each.entry)
        else:
            yield each


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What was read of a job so far; ``others`` are the other jobs of the export, the longest names first."""

    job: str
    others: tuple[str, ...]
    words: JobWords
    epoch_ns: int = 0
    unknown: UnknownEntries = field(default_factory=UnknownEntries)
    seen: list[Seen] = field(default_factory=list)
    admitted_ns: list[int] = field(default_factory=list)
    _states: ObjectStates = field(default_factory=ObjectStates)
    _nodes: set[str] = field(default_factory=set)
    _lines: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))

    def is_mine(self, entry: Entry) -> bool:
        """Whether an entry is about the job or its pods."""
        named = job_of(entry)
        if named:
            return named == self.job
        kind, name = concerned_by(entry)
        if kind in ("Pod", "ProvisioningRequest", "RayCluster"):
            return self._belongs(_WORKLOAD.sub(r"\g<name>", name) if kind == "ProvisioningRequest" else name)
        return entry.resource_type == CONTAINER and self._belongs(entry.resource.get("pod_name", ""))

    def note_nodes(self, entry: Entry) -> None:
        """Remember where its pods were: what befalls other nodes did not hit it."""
        self._nodes.update(entry.labels[label] for label in NODE_LABELS if entry.labels.get(label))
        assigned = _ASSIGNED.match(entry.text)
        if assigned is not None and entry.log == EVENTS_LOG:
            self._nodes.add(assigned["node"])

    def read(self, entry: Entry) -> None:
        """Read one entry."""
        if entry.resource_type == CONTAINER and entry.log in _OUTPUT:
            if self.is_mine(entry):
                self._lines[entry.resource.get("pod_name", "")].append(entry)
            return
        events = list(events_in(entry, self._t_s(entry), self._states))
        if not events:
            self.unknown.add(entry, self._what(entry))
            return
        if not self._concerns(entry, events):
            return
        self.seen += [Seen(event, entry) for event in events]
        for event in events:
            if isinstance(event, ClusterEventSeen):
                self._follow(event, entry)

    def stories(self) -> list[AttemptStory]:
        """What its pods said, by attempt: a RayCluster each, or the nth pod of the same host."""
        if not self.epoch_ns or not self._lines:
            return []
        found: list[AttemptStory] = []
        for number, pods in enumerate(self._lives()):
            lines = [(pod, self._said(pod, number)) for pod in pods]
            speaker = max(lines, key=lambda each: (sum(isinstance(seen.event, JobEvent) for seen in each[1]), each[0]))[0]
            heard = [seen for pod, said in lines for seen in said if pod == speaker or isinstance(seen.event, LogLine)]
            ordered = in_order(heard)
            begun = AttemptStarted(t_s=self._t_s(ordered[0].entry), attempt=number, pid=0)
            found.append(AttemptStory(task=0, number=number, seen=(Seen(begun, ordered[0].entry), *ordered)))
        return found

    def _lives(self) -> list[list[str]]:
        """Pods that ran together, life by life."""
        firsts = {pod: min(entry.t_ns for entry in entries) for pod, entries in self._lines.items()}
        groups: dict[str, dict[str, list[str]]] = defaultdict(dict)
        for pod in sorted(firsts, key=lambda pod: (firsts[pod], pod)):
            labels = self._lines[pod][0].labels
            host, life = ("", labels[RAY_LABEL]) if labels.get(RAY_LABEL) else (labels.get(INDEX_LABEL, ""), pod)
            groups[host].setdefault(life, []).append(pod)
        lives: list[list[str]] = [[] for _ in range(max(len(group) for group in groups.values()))]
        for group in groups.values():
            for number, pods in enumerate(group.values()):
                lives[number] += pods
        return lives

    def _said(self, pod: str, number: int) -> list[Seen]:
        reader = WordReader(self.words)
        said: list[Seen] = []
        for entry in self._lines[pod]:
            line = LogLine(t_s=self._t_s(entry), attempt=number, stream=_OUTPUT[entry.log], text=entry.text, severity=entry.severity)
            said += [Seen(line, entry), *(Seen(event, entry) for event in reader.read(line))]
        return said

    def _belongs(self, name: str) -> bool:
        """Whether an object that is named after a job is named after this one, and not after one with a longer name."""
        if name != self.job and not name.startswith(f"{self.job}-"):
            return False
        return not any(len(other) > len(self.job) and (name == other or name.startswith(f"{other}-")) for other in self.others)

    def _concerns(self, entry: Entry, events: Sequence[Event]) -> bool:
        """Whether what an entry says can have hit the job: it is about it, or about the cluster and no other job."""
        if self.is_mine(entry):
            return True
        if entry.t_ns < self.epoch_ns:
            return False
        kind, name = concerned_by(entry)
        if kind == "Node" or instance_of(entry):
            return not self._nodes or (name or instance_of(entry)) in self._nodes
        return any(isinstance(event, PoolScaled) for event in events)

    def _follow(self, event: ClusterEventSeen, entry: Entry) -> None:
        if event.reason == "Admitted" and event.object_name.startswith("Workload/"):
            self.admitted_ns.append(entry.t_ns)
        if not is_known(event.reason, event.message):
            self.unknown.add(entry, f"event {event.reason} of a {event.object_name.partition('/')[0]}")

    def _what(self, entry: Entry) -> str:
        if entry.log == VISIBILITY_LOG:
            return f"{VISIBILITY_LOG}: a record that is not known"
        if entry.log.startswith(AUDIT_PREFIX):
            return f"{entry.log}: {entry.payload.get('methodName') or 'no method'}"
        return ""

    def _t_s(self, entry: Entry) -> float:
        return (entry.t_ns - self.epoch_ns) / NANOSECONDS
