"""Numbers of the readings of roles and of automatic steps, with what they were derived from."""

#: Readings of roles take at most this share of the time that went by: a tenth of what a watch of 5,000 short
#: steps may take in all (docs/internals.md, targets).
ROLE_SHARE = 0.003
#: What the readings of the first steps may take beyond it, in seconds: some three of a model of a hundred
#: tensors, at 3 ms each.
ROLE_ALLOWANCE_S = 0.01
#: Steps from a reading to the next, as a share of those since the first: the highest of a loop of hundreds is
#: met by one in a few dozen, and a step that is asked is read as a whole mark.  Bounds work: a loop of 640
#: steps paid for 124 readings.
ROLE_STRETCH = 0.25
#: A reading needs the births of the step that ended, and of the one before it, whose gradients die in it.
ROLE_STEPS = 2
#: Lines that a report names of what was alive at a medium's highest point: those of a model of 25 layers are
#: most often its parameters, one line of optimizer.step() and one of backward().
PEAK_PARTS = 20
#: Batches, or steps of other optimizers, that the leading one lets by before it counts as resting, where it
#: has not let by more before: a validation of eight batches between two steps ends no step.
LEAST_REST = 8
#: Its last gaps, whose middle one is the usual: four evaluations among them do not change it.
KEPT_GAPS = 9
