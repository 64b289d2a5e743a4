"""`ringhaul doctor`: the checks, by what they look at, and how their findings are shown.

Measuring and judging are separate: a judgement is a pure function of what was seen.
"""
