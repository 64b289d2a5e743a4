"""Figures of jobs shown to people and programs: progress, lists, tables, HTML."""
