"""Pages of the public web: fetched past a guard, and read by a process that can reach nothing."""
