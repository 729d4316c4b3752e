"""What thinning leaves of the marks."""

import array

from leakprobe.watch import timeline


def test_a_row_takes_over_the_peaks_of_those_that_are_left_out_before_it():
    peaks = array.array("q", [1, 9, 2, 3, 8, 4, 5, 6])
    assert list(timeline.thin(peaks)) == [1, 2, 8, 4, 5, 6]
    assert list(timeline.thin_peaks(peaks)) == [1, 9, 8, 4, 5, 6]


def test_a_clock_that_the_program_sets_back_does_not_reach_the_marks(monkeypatch):
    made = timeline.Timeline()
    monkeypatch.setattr("time.time", lambda: 0.0)
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    made.add(1, 0, 100)
    made.add(2, 0, 100)
    assert 0 <= made.row(0)["time"] <= made.row(1)["time"]
