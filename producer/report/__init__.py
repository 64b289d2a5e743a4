"""Reports about jobs for people and programs: progress, summaries, rejects, tables."""
