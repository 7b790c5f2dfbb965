# SPDX-License-Identifier: Apache-2.0
"""What the PyTorch tests share: networks, and a run that both profilers watch.

Imported by test modules after `pytest.importorskip("torch")`.
"""
import contextlib
import pathlib
import threading
import time
import warnings

import torch
import torch.profiler
from torch import nn

import sonde

# (major, minor): what torch itself does differs from version to version, and tests say where.
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
CPU = torch.profiler.ProfilerActivity.CPU
FULL = {"record_shapes": True, "profile_memory": True, "with_flops": True}


# ----------------------------------------------------------------------- networks

class FourConvolutions(nn.Module):
    """The quick start's own model."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 3, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(3, 3, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2d(3, 3, kernel_size=3, padding=1)
        self.conv4 = nn.Conv2d(3, 3, kernel_size=3, padding=1)

    def forward(self, x):
        return self.conv4(self.conv3(self.conv2(self.conv1(x))))


def inference(model, *inputs):
    model = model.eval()

    def run():
        with torch.no_grad():
            model(*inputs)

    return run


def four_convolutions():
    return inference(FourConvolutions(), torch.randn(2, 3, 64, 64))


def torchvision_model(name):
    import torchvision
    return inference(getattr(torchvision.models, name)(), torch.randn(1, 3, 224, 224))


def bert():
    """An encoder of BERT-base's size."""
    layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
    return inference(nn.TransformerEncoder(layer, 12, enable_nested_tensor=False),
                     torch.randn(1, 16, 768))


def lstm():
    return inference(nn.LSTM(32, 64, num_layers=2, batch_first=True), torch.randn(4, 12, 32))


def training():
    """A whole step: forward, loss, backward, AdamW."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                          nn.Flatten(), nn.Linear(8 * 16 * 16, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_function = nn.CrossEntropyLoss()
    x, y = torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,))

    def run():
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        optimizer.step()

    return run


def compiled():
    net = torch.compile(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)))
    x = torch.randn(8, 16)

    def run():
        net(x).sum().backward()

    run()  # compiling is not what is compared
    return run


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((4,), float(index)).mul(2)


def loader(workers=2):
    def run():
        data = torch.utils.data.DataLoader(Numbers(), batch_size=2, num_workers=workers)
        for batch in data:
            batch.add(1)

    return run


NETWORKS = {
    "four_convolutions": four_convolutions,
    "resnet18": lambda: torchvision_model("resnet18"),
    "resnet50": lambda: torchvision_model("resnet50"),
    "vit_b_16": lambda: torchvision_model("vit_b_16"),
    "bert": bert,
    "lstm": lstm,
    "training": training,
    "compiled": compiled,
    "loader": loader,
}


# -------------------------------------------------------------- both at the same time

@contextlib.contextmanager
def both(ours_inside=True, **options):
    """(torch.profiler's, sonde's) over the same block, with the same options.

    FLOPs in torch's manner. `ours_inside`: ours starts last and stops first.
    """
    theirs = torch.profiler.profile(activities=[CPU], **options)
    mine = dict(options)
    if mine.get("with_flops"):
        mine["with_flops"] = "torch"
    ours = sonde.profile(activities=[CPU], **mine)
    first, second = (theirs, ours) if ours_inside else (ours, theirs)
    with quiet(), first, second:
        yield theirs, ours


@contextlib.contextmanager
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def take_freed_blocks():
    """Tensors where earlier profiles' blocks were. torch keeps the sizes of those that were freed while no profile was on,
    and of a block that the program gets there later it says that it frees as much: docs/TORCH.md."""
    sizes = [*range(16, 4112, 16), *(1 << bits for bits in range(13, 19))]
    return [torch.empty(size, dtype=torch.uint8) for size in sizes for _ in range(4)]


def watch(run, ours_inside=True, form="together", **options):
    """Runs once unwatched, so that nothing is done for the first time, then watched.

    Both profilers get memory when their first events come: an operator that does not count.
    `form`: one of FORMS.
    """
    def watched():
        torch.ones(1).add(1)
        run()

    run()
    if form == "apart":
        return apart(watched, **options)
    with both(ours_inside, **options) as (theirs, ours):
        watched()
    return theirs, ours


def apart(run, **options):
    """Each profiler alone on the same code: torch's, then ours."""
    mine = dict(options)
    if mine.get("with_flops"):
        mine["with_flops"] = "torch"
    with quiet():
        with torch.profiler.profile(activities=[CPU], **options) as theirs:
            run()
        with sonde.profile(activities=[CPU], **mine) as ours:
            run()
    return theirs, ours


def together(run, **options):
    with both(**options) as (theirs, ours):
        run()
    return theirs, ours


# A comparison in one form alone can hide what the other shows.
FORMS = {"apart": apart, "together": together}


def settle(seconds=60):
    """Waits until every other thread of the process sleeps.

    A pool's thread that completes a future wakes who waits for it, and only then ends its ranges:
    a profile that stops meanwhile has them without an end.
    """
    own, deadline = str(threading.get_native_id()), time.monotonic() + seconds
    asleep = 0
    while asleep < 2:  # one that waits for a lock sleeps too, but not for long
        awake = {}
        for task in pathlib.Path("/proc/self/task").iterdir():
            with contextlib.suppress(OSError):  # it has ended
                name, _, state = (task / "stat").read_text().partition(" (")[2].rpartition(") ")
                if task.name != own and state[0] != "S":
                    awake[task.name, name] = state[0]
        asleep = 0 if awake else asleep + 1
        assert time.monotonic() < deadline, f"threads still run after {seconds} s: {awake}"
        time.sleep(0.001)


def threads_of(events):
    return {event.thread for event in events}


def seen_by_both(theirs, ours):
    """Their events, and ours of the threads that torch can see."""
    their_events = list(theirs.events())
    threads = threads_of(their_events)
    return their_events, [event for event in ours.events() if event.thread in threads]


# ------------------------------------------------------------------- one profile alone

X = torch.randn(8, 8)


def record(work=lambda: X.mul(X), **options):
    with sonde.profile(activities=[CPU], **options) as prof:
        work()
    return prof


def counts(prof):
    return {row.key: row.count for row in prof.key_averages()}
