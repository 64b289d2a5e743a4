"""The state of jobs in Redis: which units exist, who works on them, which are counted.

Celery messages are only hints that a unit may be claimed. They may get lost or come twice; the
scripts in this package decide what either means. Each unit is counted exactly once.

- `states`, `limits`: the rules, pure.
- `keys`: every key, its type and its TTL.
- `*.lua`, `scripts`: the atomic steps. `common.lua` explains where a unit can be.
- `connection`, `ledger`, `reading`: the client.
- `sweep`: finds units whose worker or message was lost.
- `workers`, `openings`, `rate`: what the workers of all hosts share besides jobs.
"""
