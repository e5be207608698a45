"""The figures of the design, measured as ratios in one run on one machine: ``python -m benchmarks``."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The repository: workloads and scenarios are imported from there."""
