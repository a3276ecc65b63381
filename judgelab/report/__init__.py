"""Showing: plots, sentences made from the data, tables for people, and the published report."""

from judgelab.report.formulas import tables_as_text

tables_as_text()
