# SPDX-License-Identifier: Apache-2.0
"""A job of several hosts: their clocks are one, within the error that is stated."""
import json
import os
import pathlib
import struct

import warm_torch
from cli_tools import read, sonde

PROGRAMS = pathlib.Path(__file__).parent / "programs"
# Of launchers that may run these tests.
LAUNCHER = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}
CRC_AT, BOOT_ID_AT, EARLY_AT, START_AT, HOST_AT = 1020, 40, 72, 96, 136  # of the header: docs/FORMAT.md


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def move_to_host(path, host, ahead_ns, ppm):
    """As if another machine had recorded it, whose clock is ahead and runs fast."""
    data = bytearray(path.read_bytes())
    raw, mono, real = struct.unpack_from("<3Q", data, START_AT)
    early_raw, early_mono, early_real = struct.unpack_from("<3Q", data, EARLY_AT)
    span = json.loads(sonde("export", path, "--to", "json", "-o", "-").stdout)["events"][-1]["time_ns"] + mono - early_mono
    struct.pack_into("<Q", data, BOOT_ID_AT, 4711)
    struct.pack_into("<3Q", data, START_AT, raw, mono, real + ahead_ns)
    struct.pack_into("<3Q", data, EARLY_AT, early_raw, early_mono - int(span * ppm / 1e6), early_real)
    data[HOST_AT:HOST_AT + 64] = host.encode().ljust(64, b"\0")
    struct.pack_into("<I", data, CRC_AT, crc32c(data[:CRC_AT]))
    path.write_bytes(data)


def calls_of(trace):
    """When each rank called its collectives."""
    said = json.loads(sonde("export", trace, "--to", "json", "-o", "-").stdout)
    calls = {}
    for event in said["events"]:
        if event["kind"] == "begin" and event["name"] == "c10d::allreduce_":
            process = said["processes"][said["threads"][event["thread"]]["process"]]
            calls.setdefault(process["rank"], []).append(event["time_ns"])
    return calls


def test_hosts_have_one_clock(tmp_path):
    """Four ranks of one machine: what their clocks show is true. Two of them are moved to another host, 2.5 s ahead and 50 ppm fast."""
    environment = {name: value for name, value in os.environ.items() if name not in LAUNCHER}
    environment |= {"RENDEZVOUS": f"file://{tmp_path}/meet", "OMP_NUM_THREADS": "1"}
    job = tmp_path / "job"
    job.mkdir()
    ranks = warm_torch.run_together([((PROGRAMS / "met_rank.py", job / f"{rank}.sonde", rank, 4, 60, 0), {"env": environment})
                                     for rank in range(4)])
    assert [rank.returncode for rank in ranks] == [0] * 4, ranks
    for process in json.loads(sonde("export", job, "--to", "json", "-o", "-").stdout)["processes"]:
        said = [fact for fact in process["facts"] if fact["kind"] == "clock"]
        assert [fact["number"] for fact in said] == [1, 2], said  # when it began, when it ended
    before = calls_of(job)
    assert sorted(before) == [0, 1, 2, 3] and all(len(calls) == 60 for calls in before.values())
    totals = json.loads(read("report", job, "--view", "collectives", "--json"))["totals"]
    assert "clocks" not in totals  # of one host
    for rank in (2, 3):
        move_to_host(job / f"{rank}.sonde", "node1", 2_500_000_000, 50)
    totals = json.loads(read("report", job, "--view", "collectives", "--json"))["totals"]
    assert (totals["host_count"], totals["aligned_host_count"]) == (2, 2)
    error = totals["clock_error_ns"]
    assert 0 < error < 100_000_000
    assert f"Clocks: of 2 hosts aligned, \u00b1{error / 1e3:.1f} us" in read("report", job, "--view", "ranks").decode()
    after = calls_of(job)
    off = [(after[rank][i] - after[0][i]) - (before[rank][i] - before[0][i]) for rank in (1, 2, 3) for i in range(60)]
    assert max(map(abs, off[:60])) < 1000  # one host's
    assert max(map(abs, off)) <= error + 1000
