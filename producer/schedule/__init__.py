"""Schedules: their file, the scheduler in beat, the runs and their steps."""
