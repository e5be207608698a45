"""The pieces of the bundle."""
