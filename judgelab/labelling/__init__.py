"""People in the loop: what reviewers are asked, where their decisions go, and the views they work in."""
