"""JAX training that survives its platform: Orbax checkpoints, one process or several, resumed bit for bit."""
