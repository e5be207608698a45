"""Cloud Run Admin API v2 for jobs: executions are really run, as processes of this machine, under the platform's rules."""
