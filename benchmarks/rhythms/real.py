def run(args):
    raise SystemExit("soon")
