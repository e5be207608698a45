"""Cloud Run jobs as containers of a Docker engine on this machine; light, since ``harness clean`` asks here on every machine."""
