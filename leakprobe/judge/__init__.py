"""From evidence to verdicts: rules with reasons, and the numbers that decide."""
