"""The version, of the package and of what it writes."""

__version__ = "0.2.0"
