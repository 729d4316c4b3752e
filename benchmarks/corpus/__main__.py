"""python -m benchmarks.corpus CORPUS_DIR: run the leaking cases, judge each report and its cause.

The corpus has its own runner and judge (run_case.py, score.py), which are used as they are.  Which cause is
right is this project's own table, causes.json: {number: [cause, why]}, read against each case's source.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def load_judge(corpus: pathlib.Path):
    spec = importlib.util.spec_from_file_location("corpus_score", corpus / "score.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_case(
    corpus: pathlib.Path, folder: pathlib.Path, variant: str, warmup: int | None, timeout: float
) -> dict | None:
    """The report of one variant in a fresh process and an empty folder, or None if there is none."""
    meta = json.loads((folder / "case.json").read_text())
    with tempfile.TemporaryDirectory() as tmp:
        shutil.copy(folder / f"{variant}.py", pathlib.Path(tmp, "case.py"))
        out = pathlib.Path(tmp, "report.json")
        command = [
            sys.executable,
            str(corpus / "run_case.py"),
            "case.py",
            str(out),
            "--steps",
            str(meta["steps"]),
            "--warmup",
            str(meta["warmup"] if warmup is None else warmup),
        ]
        try:
            subprocess.run(command, cwd=tmp, capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return None
        return json.loads(out.read_text()) if out.exists() else None


def causes_told(report: dict) -> list:
    """The causes of the first three entries; a cycle that is only noted counts by its note."""
    entries = report["findings"][:3] + [n for n in report["notes"] if n["kind"] == "reference_cycle"][:1]
    return [e.get("cause") for e in entries]


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.corpus",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of cases")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--warmup", type=int, help="instead of each case's own")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--reports", type=pathlib.Path, help="a folder to keep the reports in")
    args = parser.parse_args()
    corpus = args.corpus.resolve()
    judge, expected = load_judge(corpus), json.loads((HERE / "causes.json").read_text())
    folders = [p.parent for p in sorted(corpus.glob("*/case.json")) if p.parent.name[:3] in expected]
    folders = [f for f in folders if not args.only or any(o in f.name for o in args.only)]
    right = seen = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = pool.map(lambda f: run_case(corpus, f, "leak", args.warmup, args.timeout), folders)
        for folder, report in zip(folders, runs):
            cause, meta = expected[folder.name[:3]][0], json.loads((folder / "case.json").read_text())
            if (
                not meta["ran_here"]
                or meta.get("flat_on_newer_torch")
                or meta["verdict"].startswith("silent")
            ):
                continue
            told = causes_told(report) if report else []
            if report and args.reports:
                args.reports.mkdir(parents=True, exist_ok=True)
                (args.reports / f"{folder.name[:3]}.json").write_text(json.dumps(report))
            row = judge.judge_leak(meta, report) if report else {"status": "none"}
            is_right = bool(told) and told[0] == cause
            seen, right = seen + 1, right + is_right
            flags = " ".join(
                f"{k}={row[k]}"
                for k in ("detect", "site", "owner", "bytes_ratio", "extra")
                if row.get(k) is not None
            )
            print(
                f"{row['status']:5} {folder.name} {flags} cause {'right' if is_right else f'wrong: {told}, not {cause}'}",
                flush=True,
            )
    print(f"cause right {right}/{seen}")
    return 0 if right >= 0.9 * seen else 1


if __name__ == "__main__":
    raise SystemExit(main())
