"""What may be concluded from scores: ranks, tests over sources, tests over splits."""
