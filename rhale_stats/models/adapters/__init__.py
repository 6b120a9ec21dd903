"""Models of other libraries as functions of the rows of a table: one small file a library."""
