"""The judges, one kind a file, behind one small interface (``base``)."""
