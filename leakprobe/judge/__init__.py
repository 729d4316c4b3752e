"""From evidence to what a report says: causes, merging, suppressions.  Imports ``model`` and ``evidence``."""
