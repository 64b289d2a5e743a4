"""Schedules: what to run when, and how each run went. Pure: text and numbers in and out.

- `times`, `cron`, `windows`, `timing`: when a schedule is due, in its own time zone.
- `templates`: placeholders for dates and names in a step's arguments.
- `schedules`, `parse`: a schedule, and the TOML file that defines it.
- `decide`: what to do about due times that have passed.
- `runs`: the run of one due time, step by step.
- `arrivals`: which files have arrived completely and are not loaded yet.

Times are milliseconds since 1970, UTC, by Redis's clock.
"""
