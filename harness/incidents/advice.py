"""What to do about each diagnosis, in one or two sentences.

Source: facts of the two guides; https://docs.cloud.google.com/run/docs/configuring/task-timeout,
https://docs.cloud.google.com/run/docs/configuring/max-retries, https://docs.cloud.google.com/run/docs/configuring/memory-limits,
https://docs.cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu
"""

from collections.abc import Mapping

from harness.incidents.diagnosis import DiagnosisKind

ADVICE: Mapping[DiagnosisKind, str] = {
    "healthy": "nothing",
    "unknown": "export more: the whole execution with its platform entries, and give the job's own words with --config",
    "preempted": "nothing, where it resumed: maintenance of GPU instances is routine. Keep a retry for each interruption to be expected",
    "terminated": "export the platform's entries too (varlog/system and the audit log): they say why",
    "killed-without-notice": "look at memory and at host errors; only the periodic save protects here: save more often if it hurts",
    "no-save-after-sigterm": (
        "handle SIGTERM: set a flag, save at the next step, exit 143. A shell as PID 1, a long step or JAX's notifier may hide it"
    ),
    "save-did-not-fit-the-grace": "save less or faster at SIGTERM: about 10 s are granted. Write beside and rename; save on a cadence too",
    "restarted-from-scratch": "restore on start from a place that outlives the attempt, under a name that is the same for every attempt",
    "resumed-from-an-older-checkpoint": "find out why the newer one was not offered or not whole: commit marker, rename, fsync, retention",
    "resumed-from-an-unsaved-step": (
        "look at where it reads its step from: it has to be that of the checkpoint that was restored. Export all attempts whole"
    ),
    "skipped-steps": "look at how it counts and draws its data after a restore: the step after the restored one comes next",
    "never-resumed": "look at why no attempt went on: retries left, quota, image, and the first lines after the start",
    "retries-exhausted": "execute it again, it resumes from the last checkpoint; raise --max-retries, or remove what ends each attempt",
    "timed-out": "raise --task-timeout, which counts per attempt, or let the job save and exit by itself before it; a timeout uses a retry",
    "out-of-memory": "raise the memory limit, or use less: no notice is given, nothing is saved, and retries meet it again",
    "failed-by-itself": "read its last lines before the exit: the platform did not end it, and retries meet the same error again",
    "left-unfinished": "exit 143 after a SIGTERM: exit code 0 counts as success, and nothing is tried again",
    "cancelled": "execute it again if it was not meant to end: a cancelled execution is not retried",
    "waited-for-quota": "nothing, where the wait is acceptable; else raise the quota of the flavor, or add one to fall back to",
    "fell-back-to-dws": "nothing: that is the plan. A flex-start run ends after 7 days at most, so it has to save",
    "stockout": "wait, ask for several zones, or add a flavor: Kueue falls back on quota, never on a stockout",
    "evicted": "nothing, where it was admitted again and resumed; an eviction is not charged to the job's retries",
    "preempted-in-the-queue": "raise its priority, or accept it: it is queued again, and has to resume",
    "node-maintenance": "save when the notice comes; the pods get their own grace, terminationGracePeriodSeconds",
    "host-error": "nothing can be saved at it, for there is no notice: only the periodic save protects",
    "node-preempted": "save within 15 s: more is not granted on Spot nodes, whatever terminationGracePeriodSeconds says",
    "capacity-revoked": "reactivate it, or submit it again: Kueue has deactivated the workload, and nothing undoes that by itself",
}
