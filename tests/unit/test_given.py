"""Findings that were given and no longer hold are notes of later reports."""

from sample_reports import finding, report

from leakprobe.watch.given import Given


def said(findings, step):
    return report(findings, measured=step - 5)


def test_what_no_longer_holds_is_withdrawn_with_both_steps():
    given, one = Given(), finding(onset_step=7)
    assert given.update(said([one], 20)) == [] == given.update(said([one], 30))
    (note,) = given.update(said([], 40))
    assert (note.kind, note.onset_step, note.withdrawn, note.cause) == ("withdrawn", 7, 40, one.cause)
    assert "as of step 20" in note.text and "as of step 40" in note.text
    (again,) = given.update(said([], 90))
    assert again.withdrawn == 40


def test_what_comes_back_holds_since_then():
    given, one = Given(), finding()
    given.update(said([one], 20))
    given.update(said([], 40))
    assert given.update(said([one], 60)) == []
    (note,) = given.update(said([], 80))
    assert "as of step 60" in note.text and note.withdrawn == 80


def test_one_leak_told_by_another_line_is_not_withdrawn():
    given, one = Given(), finding()
    given.update(said([one], 20))
    assert given.update(said([finding(fingerprint="f" * 12, allocation=None)], 40)) == []


def test_descriptors_that_their_objects_finding_tells_are_not_withdrawn():
    given = Given()
    counted = finding(kind="resource_growth", medium="fd", type=None, allocation=None, fingerprint="d" * 12)
    given.update(said([counted], 12))
    rise = "open descriptors rose at 9 of 9 marks, from 12 to 21 between step 5 and step 14"
    files = finding(evidence=f"9 kept since step 5; {rise}", fingerprint="e" * 12)
    assert given.update(said([files], 15)) == []
    (note,) = given.update(said([finding(fingerprint="e" * 12)], 30))
    assert (note.medium, note.withdrawn) == ("fd", 30)
