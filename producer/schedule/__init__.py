"""Schedules: their file, the scheduler of beat, the runs and their steps."""
