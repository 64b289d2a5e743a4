"""Schedules: what is to be run when, and what has become of it. Pure: text and numbers in and out.

- `times`, `cron`, `windows`, `timing`: when a schedule is due, in its own time zone.
- `templates`: the dates and names that a step's arguments may hold.
- `schedules`, `parse`: a schedule, and the TOML file that it stands in.
- `decide`: what to do about the due times that have come.
- `runs`: one due time's run, step by step.
- `arrivals`: which files have arrived whole and were not loaded yet.

Times are milliseconds since 1970, UTC, by Redis's clock.
"""
