"""Leaking cases of a corpus, with the causes that a right report tells: see __main__.py."""
