"""The figures of jobs, read from the ledger: progress, summaries, rejects, a job in detail."""
