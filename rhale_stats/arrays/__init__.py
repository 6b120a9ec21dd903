"""The formulas: arrays in, arrays out.

One file a concept, each formula a few lines citing its number ``math [n]`` in
``docs/math.md``. Nothing here knows labels, and nothing here has defaults: the labelled modules
beside this folder validate, choose and name.
"""
