"""The experiments of Klyuchnikov and Burnaev's paper, run again with polyfid.

    python -m experiments NAME... --data DIR --out DIR

An experiment is a list of cells (a problem, a method, a seed). Running a cell writes one row to
``rows.jsonl``; tables and figures are drawn from these rows and nothing else.
"""
