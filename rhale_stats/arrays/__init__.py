"""The formulas: arrays in, arrays out.

There is one file for each concept. Formulas cite their number ``math [n]`` in ``docs/math.md``.
Functions here have neither labels nor defaults: the labelled modules of the other folders check
arguments, choose defaults and name results.
"""
