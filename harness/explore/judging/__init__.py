"""Recovery from a crash state: started on a copy, observed, held against what the recording promised."""
