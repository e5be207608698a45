"""Runs jobs on Google Cloud, with the official clients: only after a plan, only on what is labelled for it."""
