"""Plain data that passes from stage to stage, and the words for sizes, media and frames.  Imports nothing above it."""
