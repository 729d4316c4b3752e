"""Names that the plugin and what it measures with share."""

import re
from typing import Any

import pytest

#: Marker => its form in one line, and what it does.
MARKERS = {
    "limit_growth": (
        (
            'limit_growth(limit="256 B/step", *, steps="3:10", media=ALL, suppressions=[], filter=None, '
            "current_thread_only=False)"
        ),
        "call the test warm-up + measured times and fail if memory grows by more than the limit",
    ),
    "skip_growth": ("skip_growth(reason)", "do not measure this test under --leakprobe"),
}
#: "3:10", warm-up and measured steps.
STEPS_FORM = re.compile(r"\s*(\d+)\s*:\s*(\d+)\s*")
#: Properties of a test: seconds that measuring it took, the verdict, that the off switch let it pass, why it
#: was not measured, and the id of its recording.
ADDED, MEASURED, DISABLED = "leakprobe_added_s", "leakprobe_verdict", "leakprobe_disabled"
UNMEASURED = "leakprobe_unmeasured"
RECORDING = "leakprobe_recording"

#: What measuring a test leaves for its TestReport, where it is the attribute of this name: plain data, which
#: xdist carries to the other side.
#: {"rate": bytes a step, "grows": the same in words, "recording": an id, a path or None, "annotation": text}
#: True of a test that called no_growth.
CALLED: pytest.StashKey[bool] = pytest.StashKey()
OUTCOME: pytest.StashKey[dict[str, Any]] = pytest.StashKey()
ATTRIBUTE = "leakprobe"

#: When annotations of GitHub are printed: in its jobs, always, never.
AUTO, ALWAYS, NEVER = "auto", "always", "never"
#: Tests that the list of those that grow most has, where that is not given.
MOST = 5
