"""Benches: one script per claim, with ringhaul and its peers in one interleaved run.

`python -m bench` runs the short form, `python -m bench --full` everything; each script also runs
alone, e.g. `python -m bench.load_small --rounds 5`. Results go to the terminal and, as JSON, to
`bench/results/`.
"""
