"""Readers of published data sets: each turns a foreign layout into items, human labels and recorded verdicts."""
