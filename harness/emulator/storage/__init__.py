"""Cloud Storage: buckets whose objects are files, so that jobs write them as through a mount."""
