"""Compute Engine: instances that exist only in name, with the statuses, operations and maintenance of real ones."""
