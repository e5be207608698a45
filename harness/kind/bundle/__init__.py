"""The offline bundle."""
