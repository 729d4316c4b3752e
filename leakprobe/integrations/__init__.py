"""Callbacks for training libraries: lightning, huggingface; ipython (the cell magic) and tensorboard
(scalars).

Each module imports its library, so that importing leakprobe imports none.
"""
