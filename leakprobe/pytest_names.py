"""Names that the plugin and what it measures with share."""

#: Marker => its form in one line, and what it does.
MARKERS = {
    "limit_growth": (
        'limit_growth(limit="256 B/step", *, steps="3:10", media=ALL, suppressions=[])',
        "call the test warm-up + measured times and fail if memory grows by more than the limit",
    ),
    "skip_growth": ("skip_growth(reason)", "do not measure this test under --leakprobe"),
}
#: Properties of a test: seconds that measuring it took, the verdict, and that the off switch let it pass.
ADDED, MEASURED, DISABLED = "leakprobe_added_s", "leakprobe_verdict", "leakprobe_disabled"
