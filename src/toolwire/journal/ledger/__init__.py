"""The ledger of runs: steps before and after they run, approvals, and the leases of runs."""
