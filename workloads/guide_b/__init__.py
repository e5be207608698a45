"""The job of GKE's guide for TPU training with Kueue and DWS, as the guide has it: it saves no checkpoint."""
