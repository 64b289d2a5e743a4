"""Benches: one script per claim, with ringhaul and its peers in one interleaved run.

`python -m bench` runs the short form, `python -m bench --full` everything; each script also runs
alone, e.g. `python -m bench.load_small --rounds 5`. Results go to the terminal and, as JSON, to
`bench/results/`, from which `python -m bench.page` writes the page of benchmarks.

A new bench: save by `harness.save` (systems) or `harness.save_table` (other figures), and name it
in `full.py`. A system of an article also needs a line in `articles.py`.
"""
