"""Loops with truth: which of those that grow a decider tells, and whether it is silent on those that do not.

Over a hundred kinds of loops (kinds.py) are simulated by the births and deaths of their items, at several lengths and many seeds.
A decider sees of each site what an engine can know (history.py), at marks a twentieth apart, and says whether it grows.
Results stand in two parts: open kinds, and a third that is held out; of those only sums are printed.
"""
