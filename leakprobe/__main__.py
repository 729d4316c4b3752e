"""python -m leakprobe."""

from leakprobe.cli import main

raise SystemExit(main())
