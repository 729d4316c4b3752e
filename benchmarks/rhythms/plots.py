"""The page of plots: shares by kind, and curves of hits over false alarms.  It carries plotly.js and needs
nothing else.
"""

import pathlib

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from benchmarks.rhythms.kinds import KINDS
from benchmarks.rhythms.summary import wilson

COLOURS = ("#2a6f97", "#d1495b", "#edae49", "#66a182", "#8d6a9f", "#6c757d")


def write(path: str, result: dict) -> None:
    figures = [curves(result), *(shares(name, found) for name, found in result["deciders"].items())]
    parts = [
        figure.to_html(full_html=False, include_plotlyjs=number == 0) for number, figure in enumerate(figures)
    ]
    title = "Growth and turnover: what each decider finds"
    pathlib.Path(path).write_text(
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title><h1>{title}</h1>{''.join(parts)}</html>\n"
    )


def curves(result: dict) -> go.Figure:
    """Hits over false alarms of each statistic of each decider, in both parts; crosses are the deciders as
    they decide.
    """
    parts = ("open", "held out")
    figure = make_subplots(1, 2, subplot_titles=[f"{part} kinds" for part in parts], shared_yaxes=True)
    for column, part in enumerate(parts, 1):
        for (name, found), colour in zip(result["deciders"].items(), COLOURS * 9):
            for statistic, by_part in found["curves"].items():
                rows = by_part[part]["threshold, false alarms, hits"]
                figure.add_scatter(
                    x=[r[1] for r in rows],
                    y=[r[2] for r in rows],
                    text=[f"threshold {r[0]:.3g}" for r in rows],
                    name=f"{name}: {statistic}",
                    legendgroup=f"{name}: {statistic}",
                    showlegend=column == 1,
                    mode="lines",
                    line={"color": colour},
                    row=1,
                    col=column,
                )
            figure.add_scatter(
                **point(name, found, part),
                marker={"color": colour, "symbol": "x", "size": 10},
                row=1,
                col=column,
            )
    figure.update_xaxes(title="share of turnover found", range=[-0.01, 1])
    figure.update_yaxes(title="share of growth found", range=[0, 1.01])
    figure.update_layout(title="Hits over false alarms as the threshold moves", height=560)
    return figure


def point(name: str, found: dict, part: str) -> dict:
    """Where the decider stands, as it decides."""
    told = [
        found["totals"].get(f"{part}, {what}, all steps", {}).get("told") for what in ("turnover", "growing")
    ]
    x, y = ([row[0] / row[1]] if row and row[1] else [] for row in told)
    return {"x": x, "y": y, "name": f"{name}, as it decides", "mode": "markers", "showlegend": part == "open"}


def shares(name: str, found: dict) -> go.Figure:
    """Told by kind, with intervals of 95 %: growth on the left, turnover on the right."""
    figure = make_subplots(
        1, 2, subplot_titles=["growing: should be 1", "turnover: should be 0"], horizontal_spacing=0.3
    )
    most = 1
    for column, grows in ((1, True), (2, False)):
        rows = {k: r["told"] for k, r in found["rows"].items() if KINDS[k].grows == grows and r["told"][1]}
        most = max(most, len(rows))
        values = [hits / of for hits, of in rows.values()]
        bounds = [wilson(hits, of) for hits, of in rows.values()]
        figure.add_scatter(
            x=values,
            y=list(rows),
            mode="markers",
            marker={"color": COLOURS[0 if grows else 1]},
            error_x={
                "type": "data",
                "array": [high - v for (_, high), v in zip(bounds, values)],
                "arrayminus": [v - low for (low, _), v in zip(bounds, values)],
            },
            showlegend=False,
            row=1,
            col=column,
        )
    figure.update_xaxes(range=[-0.02, 1.02])
    figure.update_yaxes(autorange="reversed")
    figure.update_layout(title=f"{name}: share of the loops found, by kind", height=120 + 18 * most)
    return figure
