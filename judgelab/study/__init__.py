"""What is asked: the protocol, the items, the human labels, and the run they belong to."""
