"""Small pictures as SVG text, drawn without a script; colours come from the page's style sheet."""

from collections.abc import Sequence

from leakprobe.model.units import counted, format_size, span_text

WIDTH, HEIGHT, GAP = 480, 44, 0.6


def survivors(spans: Sequence[Sequence[float]], last: float, warmup: float) -> str:
    """Bars over birth steps: how many bytes of what was born in each span are still alive.

    A leak is a level line from end to end; a cache or working set has bars at the right end only; what was
    made once and kept has one at the left.  ``spans``: [first step, last step, count, bytes].
    """
    last = max(1, last, *(span[1] for span in spans)) if spans else max(1, last)
    scale = WIDTH / (last + 1)
    rates = [size / (to - first + 1) for first, to, _count, size in spans]
    top = max(rates, default=0) or 1
    bars = []
    for (first, to, count, size), rate in zip(spans, rates):
        x, width, height = (
            first * scale,
            max(1.2, (to - first + 1) * scale - GAP),
            max(1.5, rate / top * (HEIGHT - 2)),
        )
        title = f"born in {span_text(first, to)}: {count:,.0f} alive, {format_size(size)}"
        bars.append(
            f'<rect x="{x:.1f}" y="{HEIGHT - height:.1f}" width="{width:.1f}" height="{height:.1f}"><title>{title}</title></rect>'
        )
    alive = f"survivors in {counted(len(spans), 'span')} of birth steps, up to step {last:g}"
    shade = (
        f'<rect class="warmup" x="0" y="0" width="{min(WIDTH, warmup * scale):.1f}" height="{HEIGHT}"></rect>'
        if warmup
        else ""
    )
    return (
        f'<svg class="survivors" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{alive}">'
        f'{shade}{"".join(bars)}<line class="base" x1="0" y1="{HEIGHT}" x2="{WIDTH}" y2="{HEIGHT}"></line></svg>'
    )


#: Levels of one character each in the short form of the picture, and how many there are at most.
LEVELS, MOST_LEVELS = "0123456789abcdefghijklmnopqrstuvwxyz", 48


def levels(spans: Sequence[Sequence[float]], last: float) -> str:
    """The same picture as text, one character for each span of birth steps, "0" where nothing is alive.

    A table of thousands of sites carries it; the page's script draws the bars.
    """
    last = max(1, last, *(span[1] for span in spans)) if spans else max(1, last)
    tops = [0.0] * MOST_LEVELS
    for first, to, _count, size in spans:
        low, high = (int(step / (last + 1) * MOST_LEVELS) for step in (first, to))
        for place in range(low, min(high, MOST_LEVELS - 1) + 1):
            tops[place] = max(tops[place], size / (to - first + 1))
    most = max(tops) or 1
    return "".join(LEVELS[round(top / most * (len(LEVELS) - 2)) + 1 if top else 0] for top in tops)
