"""Asking: prompts, replies and their contracts, judges, the ledger, and the runner that brings them together."""
