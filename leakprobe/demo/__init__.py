"""Small training scripts on real images: two that leak, one that does not."""
