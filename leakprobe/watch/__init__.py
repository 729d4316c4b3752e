"""The watch of a loop: when to look, and what is done at its marks.  Imports ``judge`` and all below it."""
