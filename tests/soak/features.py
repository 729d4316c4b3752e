"""Loops over what torch offers for training, each clean and with one leak, under ``leakprobe run``.

    python tests/soak/features.py [FEATURE ...] [--steps 200] [--device cuda] [--jobs 1]

Prints a row a loop: a clean one must be steady, a leaking one have one finding, at the line marked KEPT.
Exit status 1 if one is not.  Every loop is this file again, with the feature's name and what it keeps.
On ``cuda`` networks and batches are the device's, and features come with it that only it has.
"""

import argparse
import concurrent.futures
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

INPUTS, HIDDEN, CLASSES, BATCH = 64, 128, 8, 32
FEATURES = {}
ON_CUDA_ONLY = []


def feature(function):
    FEATURES[function.__name__] = function
    return function


def cuda_feature(function):
    ON_CUDA_ONLY.append(function.__name__)
    return feature(function)


class Loop:
    """Steps of training; ``keeps``: whether each step's inputs are kept."""

    def __init__(self, steps: int, keeps: bool, device: str):
        self.steps, self.keeps, self.device, self.kept = steps, keeps, device, []
        self.net = nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))

    def batch(self, size=BATCH):
        return torch.randn(size, INPUTS), torch.randint(0, CLASSES, (size,))

    def keep(self, x):
        if self.keeps:
            self.kept.append(x.detach().clone())  # KEPT

    def train(self, forward=None, optimizer=None, parameters=None, after=lambda: None, sizes=(BATCH,)):
        parameters = list(parameters or self.net.parameters())
        optimizer = optimizer or torch.optim.Adam(parameters)
        for step in range(self.steps):
            x, y = self.batch(sizes[step % len(sizes)])
            optimizer.zero_grad()
            loss = F.cross_entropy((forward or self.net)(x), y)
            loss.backward()
            optimizer.step()
            self.keep(x)
            after()


@feature
def eager(loop):
    loop.train(torch.compile(loop.net, backend="eager"))


@feature
def aot_eager(loop):
    loop.train(torch.compile(loop.net, backend="aot_eager"))


@feature
def inductor(loop):
    loop.train(torch.compile(loop.net, backend="inductor"))


@feature
def dynamic_shapes(loop):
    loop.train(torch.compile(loop.net, backend="aot_eager", dynamic=True), sizes=range(8, 31))


@feature
def recompilation(loop):
    factors = iter(range(loop.steps))
    scaled = torch.compile(lambda x, factor: loop.net(x) * factor, backend="eager")
    loop.train(lambda x: scaled(x, 1.0 + next(factors) % 5))


@feature
def script(loop):
    net = torch.jit.script(loop.net)
    loop.train(net, parameters=net.parameters())


@feature
def symbolic_trace(loop):
    net = torch.fx.symbolic_trace(loop.net)
    loop.train(net, parameters=net.parameters())


@feature
def exported(loop):
    net = torch.export.export(loop.net, (loop.batch()[0],)).module()
    loop.train(net, parameters=net.parameters())


@feature
def checkpoint(loop):
    from torch.utils.checkpoint import checkpoint

    loop.train(lambda x: checkpoint(loop.net, x, use_reentrant=False))


@feature
def vmap_of_grad(loop):
    from torch.func import functional_call, grad, vmap

    def loss(parameters, x, y):
        return F.cross_entropy(functional_call(loop.net, parameters, (x[None],)), y[None])

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))
    optimizer = torch.optim.SGD(loop.net.parameters(), 0.1)
    for _ in range(loop.steps):
        x, y = loop.batch()
        found = gradients({name: p.detach() for name, p in loop.net.named_parameters()}, x, y)
        for name, parameter in loop.net.named_parameters():
            parameter.grad = found[name].mean(0)
        optimizer.step()
        loop.keep(x)


@feature
def profiler(loop):
    from torch.profiler import ProfilerActivity, profile, schedule

    with profile(
        activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] * (loop.device == "cuda"))],
        schedule=schedule(wait=5, warmup=1, active=2, repeat=0),
        on_trace_ready=lambda trace: trace.key_averages().table(row_limit=3),
    ) as running:
        loop.train(after=running.step)


@feature
def autocast(loop):
    def forward(x):
        with torch.autocast(loop.device, dtype=torch.bfloat16):
            return loop.net(x).float()

    loop.train(forward)


@feature
def lbfgs(loop):
    optimizer = torch.optim.LBFGS(loop.net.parameters(), lr=0.1, max_iter=4, history_size=10)
    for _ in range(loop.steps):
        x, y = loop.batch()

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = F.cross_entropy(loop.net(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)
        loop.keep(x)


@feature
def parametrizations(loop):
    from torch.nn.utils.parametrizations import spectral_norm, weight_norm

    loop.net = nn.Sequential(
        weight_norm(nn.Linear(INPUTS, HIDDEN)), nn.ReLU(), spectral_norm(nn.Linear(HIDDEN, CLASSES))
    )
    loop.train()


@feature
def averaged_model(loop):
    from torch.optim.swa_utils import AveragedModel

    averaged = AveragedModel(loop.net)
    loop.train(after=lambda: averaged.update_parameters(loop.net))


@feature
def forward_hooks(loop):
    means = {}
    for name, module in loop.net.named_modules():
        module.register_forward_hook(
            lambda _, inputs, out, name=name: means.__setitem__(name, out.detach().mean().item())
        )
    loop.train()


@feature
def accumulation(loop):
    def forward(x):
        for _ in range(3):
            other, y = loop.batch()
            F.cross_entropy(loop.net(other), y).backward()
        return loop.net(x)

    loop.train(forward)


@feature
def recurrent_state(loop):
    cell, head, state = nn.GRU(INPUTS, INPUTS, batch_first=True), nn.Linear(INPUTS, CLASSES), None

    def forward(x):
        nonlocal state
        out, state = cell(x[:, None], state)
        state = state.detach()
        return head(out[:, -1])

    loop.train(forward, parameters=[*cell.parameters(), *head.parameters()])


@feature
def best_state(loop):
    best = {}
    loop.train(after=lambda: best.update(copy.deepcopy(loop.net.state_dict())))


@feature
def distributed(loop):
    with tempfile.TemporaryDirectory() as folder:
        torch.distributed.init_process_group(
            "nccl" if loop.device == "cuda" else "gloo",
            init_method=f"file://{folder}/store",
            rank=0,
            world_size=1,
        )
        loop.train(nn.parallel.DistributedDataParallel(loop.net))
        torch.distributed.destroy_process_group()


@feature
def anomaly_mode(loop):
    with torch.autograd.set_detect_anomaly(True):
        loop.train()


@feature
def saved_on_cpu(loop):
    with torch.autograd.graph.save_on_cpu(pin_memory=loop.device == "cuda"):
        loop.train()


@feature
def fused_transformer(loop):
    layer = nn.TransformerEncoderLayer(INPUTS, 4, HIDDEN, batch_first=True)
    encoder, head = nn.TransformerEncoder(layer, 2), nn.Linear(INPUTS, CLASSES)
    parameters = [*encoder.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, fused=True)
    loop.train(lambda x: head(encoder(x[:, None]).mean(1)), optimizer, parameters, sizes=range(5, 35))


@feature
def second_derivatives(loop):
    def forward(x):
        x.requires_grad_()
        out = loop.net(x)
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        return out + slope.pow(2).mean()

    loop.train(forward)


@cuda_feature
def scaled_gradients(loop):
    scaler, optimizer = torch.amp.GradScaler("cuda"), torch.optim.AdamW(loop.net.parameters())
    for _ in range(loop.steps):
        x, y = loop.batch()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(loop.net(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        loop.keep(x)


@cuda_feature
def graphed_callable(loop):
    loop.train(torch.cuda.make_graphed_callables(loop.net, (loop.batch()[0],)))


@cuda_feature
def reduced_overhead(loop):
    loop.train(torch.compile(loop.net, mode="reduce-overhead"))


@cuda_feature
def graph_replay(loop):
    x, y = loop.batch()
    optimizer = torch.optim.SGD(loop.net.parameters(), 0.01)

    def whole_step():
        optimizer.zero_grad()
        F.cross_entropy(loop.net(x), y).backward()
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        whole_step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        whole_step()
    for _ in range(loop.steps):
        new_x, new_y = loop.batch()
        x.copy_(new_x)
        y.copy_(new_y)
        graph.replay()
        optimizer.step()
        loop.keep(new_x)


@cuda_feature
def convolutions(loop):
    torch.backends.cudnn.benchmark = True
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, CLASSES)
    )
    loop.train(lambda x: net(x.view(-1, 1, 8, 8)), parameters=net.parameters(), sizes=range(8, 24))


@cuda_feature
def emptied_cache(loop):
    loop.train(after=torch.cuda.empty_cache)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return BATCH * 25

    def __getitem__(self, index):
        return torch.full((INPUTS,), index / 800, device="cpu"), torch.tensor(index % CLASSES, device="cpu")


@cuda_feature
def pinned_prefetch(loop):
    loader = torch.utils.data.DataLoader(
        Rows(), BATCH, num_workers=2, pin_memory=True, persistent_workers=True
    )
    optimizer, copies = torch.optim.Adam(loop.net.parameters()), torch.cuda.Stream()
    for _ in range(loop.steps // len(loader)):
        for x, y in loader:
            with torch.cuda.stream(copies):
                x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(copies)
            x.record_stream(torch.cuda.current_stream())
            y.record_stream(torch.cuda.current_stream())
            optimizer.zero_grad()
            F.cross_entropy(loop.net(x), y).backward()
            optimizer.step()
            loop.keep(x)


@cuda_feature
def half_precision_attention(loop):
    layer = nn.MultiheadAttention(INPUTS, 4, batch_first=True).half()
    head = nn.Linear(INPUTS, CLASSES)

    def forward(x):
        tokens = x.half()[:, None].expand(-1, 16, -1)
        return head(layer(tokens, tokens, tokens, need_weights=False)[0].mean(1).float())

    loop.train(forward, parameters=head.parameters())


def run(name: str, keeps: bool, steps: int, device: str, folder: str) -> str:
    """What is wrong with the report of one loop, "" for nothing."""
    report = pathlib.Path(folder, f"{name}{keeps}.json")
    loop = [sys.executable, "-m", "leakprobe", "run", "--json", str(report), __file__, name]
    which = ["--steps", str(steps), "--device", device, "--loop", "kept" if keeps else "clean"]
    done = subprocess.run([*loop, *which], capture_output=True, text=True)
    if not report.exists():
        return f"no report: {done.stderr[-300:]}"
    found = json.loads(report.read_text())["findings"]
    lines = [(finding["allocation"] or {}).get("lineno") for finding in found]
    kept_at = next(
        n for n, line in enumerate(pathlib.Path(__file__).read_text().split("\n"), 1) if "# KEPT" in line
    )
    if lines == ([kept_at] if keeps else []):
        return ""
    errors = [line for line in done.stderr.splitlines() if "Error" in line][-1:]
    return ", ".join([f"findings at {lines}", f"exit status {done.returncode}", *errors])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("features", nargs="*", metavar="FEATURE", help=", ".join(FEATURES))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="loops at a time")
    parser.add_argument("--loop", choices=("clean", "kept"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.loop:
        torch.manual_seed(0)
        torch.set_default_device(args.device)
        FEATURES[args.features[0]](Loop(args.steps, args.loop == "kept", args.device))
        return 0
    names = args.features or [name for name in FEATURES if args.device == "cuda" or name not in ON_CUDA_ONLY]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        loops = [(name, keeps) for name in names for keeps in (False, True)]
        wrong = list(pool.map(lambda loop: run(*loop, args.steps, args.device, folder), loops))
    for (name, keeps), what in zip(loops, wrong):
        print(f"{name}, {'one leak' if keeps else 'clean'}: {what or 'right'}", flush=True)
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main())
