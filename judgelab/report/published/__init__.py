"""Figures that others published, computed anew from the same data and compared as they were printed."""
