"""Executions of Cloud Run jobs: the platform's rules, log and names, whatever an attempt is made of."""
