"""What breaks in public, and what was measured: the cases and findings that scenarios and wrong jobs refer to by number.

No code or wording of a report is taken; each row says in our words what went wrong and what is right.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """A public report, or a finding of ours where ``link`` is empty.

    Attributes:
        link: Of the report.
        broke: What went wrong.
        right: What a right job does.
    """

    link: str
    broke: str
    right: str


_GITHUB = "https://github.com/"

CASES: dict[int, Case] = {
    1: Case(
        _GITHUB + "AI-Hypercomputer/maxtext/pull/5260",
        "a death in a save leaves a stale step in memory; later saves are skipped without a word",
        "fall back to the last committed step, and go on saving",
    ),
    2: Case(
        _GITHUB + "google/orbax/issues/394",
        "a checkpoint that was copied without its commit file counts as temporary, and is deleted",
        "never delete what one did not write; say why it is not used",
    ),
    3: Case(
        _GITHUB + "google/orbax/pull/3537",
        "a mounted bucket is taken for a local disk: a directory rename that is not atomic",
        "a commit mark on mounts; a torn rename is no checkpoint",
    ),
    5: Case(
        _GITHUB + "google/orbax/issues/605",
        "the failure of an asynchronous save is not told; a later delete crashes",
        "raise at the next save or wait",
    ),
    6: Case(
        _GITHUB + "google/orbax/issues/2657",
        "asked to overwrite, the save does not; the last checkpoint is lost",
        "overwrite, or raise before training goes on",
    ),
    9: Case(
        _GITHUB + "Physical-Intelligence/openpi/issues/566", "a stale temporary makes a step unsavable for ever", "clear it away, and save"
    ),
    12: Case(
        _GITHUB + "huggingface/transformers/issues/35782",
        "a death in a save leaves a directory that resuming picks, and crashes on",
        "skip what is incomplete",
    ),
    13: Case(
        _GITHUB + "KempnerInstitute/KempnerForge/issues/102",
        "the link to the latest moves before its data is durable; clean-up may delete the last good one",
        "durable first, then the link, then clean-up",
    ),
    14: Case(_GITHUB + "tdrussell/diffusion-pipe/issues/159", "a checkpoint of 0 bytes", "replace whole or not at all"),
    16: Case(
        _GITHUB + "pytorch/torchtitan/pull/4270",
        "closing does not wait for the asynchronous save: the last one is lost at a clean exit",
        "drain before the exit",
    ),
    17: Case(
        _GITHUB + "petuum/adaptdl/issues/70",
        "the grace ends in a save, which corrupts it; the restart crashes",
        "write beside, rename; the old one stays",
    ),
    19: Case(
        _GITHUB + "google/grain/pull/1179",
        "the state of the data order is lost: wrong samples after a restore in a fresh process",
        "the same sequence",
    ),
    23: Case(
        _GITHUB + "AI-Hypercomputer/maxdiffusion/pull/484",
        "the step is off by one and the optimizer is not restored",
        "every part, exactly",
    ),
    25: Case(
        _GITHUB + "verl-project/verl/issues/7401", "a resume at the boundary of an epoch skips an epoch, with exit code 0", "train it"
    ),
    26: Case(_GITHUB + "NVIDIA-NeMo/Automodel/issues/763", "the optimizer or the schedule starts anew", "restored"),
    31: Case(
        _GITHUB + "goodfire-ai/spd/issues/677",
        "the flag of SIGTERM is read between steps only: no save in six tries",
        "save in every phase, or say that one cannot",
    ),
    33: Case("", "on one process without a distributed client the preemption save never fires", "save"),
    34: Case(
        _GITHUB + "jax-ml/jax/issues/38503", "a rank that is alive and stuck: the others wait for ever", "an error that names the rank"
    ),
    36: Case(_GITHUB + "marin-community/marin/pull/4199", "a stale coordinator kills the workers of the new attempt", "fencing by attempt"),
    41: Case(
        _GITHUB + "ray-project/kuberay/issues/2155",
        "the head dies, and the new driver ignores the checkpoints",
        "the same run name, and resume",
    ),
    42: Case(
        _GITHUB + "ray-project/kuberay/issues/5211", "a retry overlaps what is left of the first try: two writers", "one writer at a time"
    ),
    48: Case(
        _GITHUB + "kubernetes-sigs/kueue/issues/2560",
        "a stockout does not move a job to the next flavor",
        "the next flavor, or a wait that is documented",
    ),
    49: Case(
        _GITHUB + "kubernetes-sigs/kueue/issues/5129",
        "a request for capacity fails as the pool is at its maximum size, and is never made again",
        "make it again",
    ),
    50: Case(_GITHUB + "kubernetes-sigs/kueue/issues/6323", "after its second failure a request is not made again", "a third request"),
    53: Case(
        _GITHUB + "kubernetes-sigs/kueue/issues/15255",
        "capacity is dry for longer than the retries last: the workload is deactivated for ever",
        "keep queueing, or say that one has stopped",
    ),
    58: Case(
        _GITHUB + "kubernetes-sigs/jobset/issues/1117",
        "a preemption by the queue counts toward the restarts that the job may have",
        "it is counted to nobody's budget",
    ),
    61: Case("", "nodes are reclaimed minutes after they came: the pods lack the annotations of their request", "both annotations"),
    62: Case(
        _GITHUB + "GoogleCloudPlatform/gcsfuse/issues/77",
        "the temporary directory is full: a truncated object",
        "an error, and no truncated checkpoint",
    ),
    64: Case(_GITHUB + "GoogleCloudPlatform/gcsfuse/pull/2722", "two writers of one object: stale handles", "one writer at a time"),
    69: Case(
        _GITHUB + "GoogleCloudPlatform/gcs-fuse-csi-driver/issues/44",
        "a stale cache: no such file for a committed step",
        "look again, or fall back; never crash for ever",
    ),
}
"""By the number that tags (``case-12``) and wrong jobs use."""

FINDINGS: dict[int, str] = {
    1: "JaxTrainer with several CPU workers does not initialise jax.distributed unless told: each worker is process 0 of 1, silently.",
    2: "`ray.train.report` returning is not a commit: the controller commits at its next poll, and what is on storage before is an orphan.",
    3: "A truncated `checkpoint_manager_snapshot.json`, or the loss of any checkpoint that it lists, makes a Ray Train run unstartable.",
    4: "A flipped byte in an Orbax data file restores without an error, with wrong values; an empty directory named like a step is the latest step.",
    5: "After an asynchronous `save()` the manager's latest step names what is not committed; an exit without waiting loses it, with code 0.",
    6: "With jax.distributed SIGTERM is swallowed and becomes a sync point; without it the sync point is always false, and nothing is saved.",
    7: "A killed rank makes the others abort after the heartbeat's time-out; a killed coordinator at once; a stuck rank with heartbeats never.",
    8: "Kueue falls back between flavors on quota, not on stockout nor on lost nodes; a stockout of DWS is no failure but an endless wait.",
    9: "Kueue takes CapacityRevoked for a rejection even of an admitted workload: deactivated, and never queued again by itself.",
    10: "Cloud Run tasks with GPUs are terminated at maintenance, not migrated; the signals around a migration are for CPU tasks.",
    12: "The guide's RayJob for Kueue, DWS and JaxTrainer saves no checkpoint: whatever ends it ends all of its work.",
    13: "The default run name of Ray Train holds the time: a retry without a fixed name starts from scratch.",
    15: "A Kueue queue whose flavors have a topology evicts a workload when its nodes are gone, and dws takes it; v0.17.0 only if chips are all it covers.",
}
"""Measured with ray 2.60.0, jax 0.10.2, orbax-checkpoint 0.12.8 and kueue v0.17.0; 10 and 12 are Google's documentation."""
