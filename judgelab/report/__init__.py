"""Showing: plots, sentences made from the data, tables for people, and the published report."""
