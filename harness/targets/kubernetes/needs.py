"""What a written job needs of its namespace, and what of that will not be there: a run's namespace holds what the run brings.

What belongs to the whole cluster, as storage classes, drivers and images do, is not looked for: of that Kubernetes speaks itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from harness.errors import InvalidDocumentError
from harness.targets.kubernetes.api import Object, labels_of, name_of
from harness.targets.kubernetes.parts import Part

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"

PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
"""Source: https://kueue.sigs.k8s.io/docs/concepts/workload_priority_class/."""

ALWAYS_THERE = frozenset({("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")})
"""What Kubernetes makes in every namespace."""

ADVICE = MappingProxyType(
    {
        "ServiceAccount": "leave it out: the pods of a run are of `default`",
        "PersistentVolumeClaim": "leave the volume out: checkpoints go to $CHECKPOINT_DIR, which is mounted and outlives pods",
        "Secret": "leave it out or mark it `optional`: a run brings no Secrets",
        "ConfigMap": "write it into the same file, or mark it `optional`",
    }
)

Need = tuple[str, str, str]
"""Field, and kind and name of what it names."""


def refuse_unmet(main: Object, others: Sequence[Object], queues: Sequence[Object], *, document: str) -> None:
    """See that a job names only what its namespace will have.

    Args:
        main: The Job or RayJob.
        others: What is made beside it.
        queues: Those of the run.
        document: Where it is written, for the message.

    Raises:
        InvalidDocumentError: When it names something else, or its pods are not written as pods are.
    """
    _refuse_label(main, QUEUE_LABEL, "LocalQueue", (*others, *queues), document)
    _refuse_label(main, PRIORITY_LABEL, "WorkloadPriorityClass", queues, document)
    there = ALWAYS_THERE | {(str(one["kind"]), name_of(one)) for one in others}
    for pod in _pods(main, document):
        for field, kind, name in pod.needs():
            if (kind, name) not in there:
                problem = f"{kind} {name} is not there: a run has a namespace of its own, with what the job brings and nothing else"
                raise InvalidDocumentError(document=document, field=field, problem=problem, advice=ADVICE[kind])


def _refuse_label(main: Object, label: str, kind: str, brought: Sequence[Object], document: str) -> None:
    """See that what a label of Kueue's names is there."""
    known, wanted = sorted(name_of(one) for one in brought if one["kind"] == kind), labels_of(main).get(label)
    if wanted is not None and wanted not in known:
        problem = f"{kind} {wanted} is not there; the run has {', '.join(known) or 'none'}"
        beside = "the same file, or into " if kind == "LocalQueue" else ""
        advice = f"name one of these, or write a {kind} of that name into {beside}the file that `cluster.queues` names"
        raise InvalidDocumentError(document=document, field=f"metadata.labels[{label}]", problem=problem, advice=advice)


def _pods(main: Object, document: str) -> Iterator["_Pod"]:
    """The pods that are written in it."""
    whole = Part(main, "", document)
    if main["kind"] == "Job":
        yield _pod(whole.part("spec").part("template"))
        return
    cluster = whole.part("spec").part("rayClusterSpec")
    cluster.part("autoscalerOptions").parts("volumeMounts")
    yield _pod(cluster.part("headGroupSpec").part("template"))
    for group in cluster.parts("workerGroupSpecs"):
        yield _pod(group.part("template"))
    if whole.part("spec").value.get("submitterPodTemplate"):
        yield _pod(whole.part("spec").part("submitterPodTemplate"))


def _pod(template: Part) -> "_Pod":
    template.check_metadata()
    return _Pod(template.part("spec"))


@dataclass(frozen=True, slots=True)
class _Pod:
    """The spec of a pod."""

    spec: Part

    def needs(self) -> Iterator[Need]:
        """What it names of its namespace and cannot do without.

        Raises:
            InvalidDocumentError: When it is not written as a pod is.
        """
        if not self.spec.named("containers"):
            raise self.spec.refusal("containers", "holds no container", "write the pods of the job there")
        if account := self.spec.value.get("serviceAccountName"):
            yield f"{self.spec.place}.serviceAccountName", "ServiceAccount", str(account)
        for volume in self.spec.named("volumes"):
            claim = volume.part("persistentVolumeClaim")
            if claim.value:
                yield claim.place, "PersistentVolumeClaim", str(claim.value.get("claimName", ""))
            for source in (volume, *volume.part("projected").parts("sources")):
                yield from _taken(source, "secret", "configMap")
        for container in (*self.spec.named("initContainers"), *self.spec.named("containers")):
            container.named("volumeMounts")
            for source in container.parts("envFrom"):
                yield from _taken(source, "secretRef", "configMapRef")
            for variable in container.named("env"):
                yield from _taken(variable.part("valueFrom"), "secretKeyRef", "configMapKeyRef")


def _taken(source: Part, *keys: str) -> Iterator[Need]:
    """The Secret and the ConfigMap that something is taken from, unless it may be missing."""
    for kind, key in zip(("Secret", "ConfigMap"), keys, strict=True):
        named = source.part(key)
        if named.value and not named.value.get("optional"):
            yield named.place, kind, str(named.value.get("name") or named.value.get("secretName") or "")
