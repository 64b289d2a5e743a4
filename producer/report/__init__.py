"""What people and programs read about a job: progress, summaries, rejects, tables."""
