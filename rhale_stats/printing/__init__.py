"""How results are printed and shown."""
