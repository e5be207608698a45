"""The right jobs of the catalogue, sized so that a scenario takes seconds."""

from harness.scenario import LogPatterns, Outside, Workload

COUNTER = Workload(
    name="counter",
    command=("{python}", "-m", "workloads.counter.train"),
    steps=40,
    save_every=5,
    environment={"STEPS": "40", "STEP_SECONDS": "0.02", "SAVE_EVERY": "5"},
    layout="text-file",
    sources=("workloads/counter", "workloads/protocol.py"),
)
"""The job of the Cloud Run guide, to the letter; 40 steps of 20 ms where the guide has 100 of one second."""

LINEAR = Workload(
    name="linear",
    command=("{python}", "-m", "workloads.linear.train"),
    steps=40,
    save_every=5,
    environment={"STEPS": "40", "STEP_SECONDS": "0.02", "SAVE_EVERY": "5", "SEED": "{seed}"},
    layout="step-directories",
    sources=("workloads/linear", "workloads/protocol.py"),
    outside=Outside(result="{checkpoint_dir}/final.json"),
)
"""The whole promise in the standard library: optimizer, PRNG, data order, fencing, verified checkpoints."""

LINEAR_RANKS = Workload(
    name="linear-ranks",
    command=("{python}", "-m", "workloads.linear.train"),
    steps=40,
    save_every=5,
    environment={"STEPS": "40", "STEP_SECONDS": "0.02", "SAVE_EVERY": "5", "SEED": "{seed}", "RANKS": "2"},
    layout="step-directories",
    ranks=2,
    sources=("workloads/linear", "workloads/protocol.py"),
)
"""The same on two processes in one task."""

JAX_GPU = Workload(
    name="jax-gpu",
    command=("{python}", "-m", "workloads.jax_gpu.train"),
    steps=20,
    save_every=5,
    environment={"STEPS": "20", "STEP_SECONDS": "0.05", "SAVE_EVERY": "5", "SEED": "{seed}"},
    layout="orbax",
    sources=("workloads/jax_gpu", "workloads/protocol.py"),
)
"""JAX, optax and Orbax on one process; on a GPU where there is one."""

JAX_GPU_RANKS = Workload(
    name="jax-gpu-ranks",
    command=("{python}", "-m", "workloads.jax_gpu.launch"),
    steps=40,
    save_every=5,
    environment={"STEPS": "40", "STEP_SECONDS": "0.05", "SAVE_EVERY": "5", "SEED": "{seed}", "RANKS": "2"},
    layout="orbax",
    ranks=2,
    sources=("workloads/jax_gpu", "workloads/protocol.py"),
)
"""The same with ``jax.distributed`` on two processes; long enough that SIGTERM is noticed before the end: its notifier looks once a second.

Source: xla, xla/tsl/distributed_runtime/preemption/preemption_notifier.cc (``kListenInterval``).
"""

JAX_TPU = Workload(
    name="jax-tpu",
    command=("{python}", "-m", "workloads.jax_tpu.train"),
    steps=12,
    save_every=3,
    environment={"STEPS": "12", "STEP_SECONDS": "0.1", "SAVE_EVERY": "3", "SEED": "{seed}"},
    layout="ray-train",
    ranks=2,
    sources=("workloads/jax_tpu", "workloads/protocol.py"),
)
"""The GKE guide's JaxTrainer job with checkpoints, two workers on a local Ray cluster, CPU devices standing for TPU chips."""

JAX_HOSTS = Workload(
    name="jax-hosts",
    command=("{python}", "-m", "workloads.jax_hosts.train"),
    steps=40,
    save_every=5,
    environment={"STEPS": "40", "STEP_SECONDS": "0.2", "SAVE_EVERY": "5", "SEED": "{seed}"},
    layout="step-directories",
    ranks=2,
    sources=("workloads/jax_hosts", "workloads/jax_tpu", "workloads/linear/checkpoints.py", "workloads/protocol.py"),
    outside=Outside(result="{checkpoint_dir}/final.json"),
)
"""Two hosts over ``jax.distributed``, as an indexed Job: what a slice trains with, without Ray."""

JAX_SLICE = Workload(
    name="jax-slice",
    command=("{python}", "-m", "workloads.jax_tpu.train"),
    steps=24,
    save_every=3,
    environment={
        "STEPS": "24",
        "STEP_SECONDS": "1",
        "SAVE_EVERY": "3",
        "SEED": "{seed}",
        "RANKS": "2",
        "TPU_TOPOLOGY": "2x4",
        "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "240",
    },
    layout="ray-train",
    ranks=2,
    sources=("workloads/jax_tpu", "workloads/protocol.py"),
)
"""The GKE guide's JaxTrainer job with checkpoints, on the two hosts of a 2x4 slice. Ray gives a worker group 60 s to start, which pods that
share two cores do not always make."""

GUIDE_B = Workload(
    name="guide-b",
    command=("{python}", "train.py"),
    speaks_protocol=False,
    ranks=4,
    sources=("workloads/guide_b",),
    directory="workloads/guide_b",
    outside=Outside(logs=LogPatterns(step=r"Epoch (?P<step>\d+): Loss", done=r"Training Complete!")),
)
"""The GKE guide's own job, which knows nothing of the harness and saves nothing."""
