"""Where a job can be hit for sure: by what it says, attempt by attempt, and cell by cell. Pure, for what draws and for what counts."""
