"""Where recoveries are tried: workers on this machine, or an existing Ray cluster. Both let the same worker do it."""
