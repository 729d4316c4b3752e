"""The fixture no_growth in real pytest runs."""

pytest_plugins = ["pytester"]

LEAK = """
kept = []
def leak():
    kept.append(bytearray(4000))
def clean():
    bytearray(4000)
"""


def test_a_leak_fails_and_its_first_line_says_what(pytester):
    pytester.makepyfile(LEAK + "def test_leak(no_growth):\n    no_growth(leak, steps='3:10')\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["memory grows: +* KiB/step of bytearray from *.py:3", "*kept by*kept*"])


def test_a_clean_loop_passes(pytester):
    pytester.makepyfile(LEAK + "def test_clean(no_growth):\n    assert no_growth(clean, steps='3:10').verdict == 'steady'\n")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_as_a_context_manager(pytester):
    pytester.makepyfile(
        LEAK
        + "def test_leak(no_growth):\n    with no_growth(limit='1 KiB/step') as probe:\n"
        + "        for _ in probe.steps(range(20)):\n            leak()\n"
        + "def test_limit(no_growth):\n    with no_growth(limit='64 KiB/step') as probe:\n"
        + "        for _ in probe.steps(range(20)):\n            leak()\n"
        + "def test_error(no_growth):\n    with no_growth() as probe:\n        raise KeyError('mine')\n"
    )
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*KeyError: 'mine'"])


def test_too_few_steps_are_not_enough_evidence(pytester):
    pytester.makepyfile(LEAK + "def test_few(no_growth):\n    no_growth(clean, steps='1:1')\n")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["not enough evidence: 4 steps measured*"])


def test_wrong_steps_are_an_error(pytester):
    pytester.makepyfile(LEAK + "def test_wrong(no_growth):\n    no_growth(clean, steps='many')\n")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*LeakprobeError: steps must be*"])
