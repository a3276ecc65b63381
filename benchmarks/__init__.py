"""Benchmarks: ``python -m benchmarks`` runs them all and prints what it measured."""
