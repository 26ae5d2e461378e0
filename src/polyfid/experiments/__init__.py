"""The experiments of the paper, declared as data: cells are run, rows kept, pages drawn from rows.

An experiment lists its cells (problems × methods × seeds); `polyfid.experiments.run` computes
those that are missing and appends their rows to ``rows.csv``; tables and figures read rows only.
"""
