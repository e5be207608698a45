"""Builds the pieces that are missing, one lane for compilers beside one for everything else."""
