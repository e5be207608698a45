"""Proves that long AI training jobs survive their platforms.

Kept light on purpose: pytest imports this package at every start (design: figures to reach). Import what you need from its modules.
"""

__version__ = "0.1.0"
