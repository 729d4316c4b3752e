"""What the measurements say, as few numbers: who survives and who dies, and how a total moves."""
