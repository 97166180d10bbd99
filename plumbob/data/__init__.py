"""Tables from files and the registry: reading, preparing, aligning, fetching."""
