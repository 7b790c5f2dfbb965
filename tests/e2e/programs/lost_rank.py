# SPDX-License-Identifier: Apache-2.0
"""lost_rank.py HOW - a rank of a job on gloo of which rank 2 never comes to the fourth of its collectives: it is killed before (`killed`), or
does something else for ever (`stuck`), while the others wait. Each writes its number into pid-RANK before that one."""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
dist.init_process_group("gloo", init_method=os.environ["RENDEZVOUS"], rank=rank, world_size=4)


def main():
    for number in range(5):
        if number == 3:
            with open(f"pid-{rank}.new", "w", encoding="utf-8") as file:
                file.write(str(os.getpid()))
            os.rename(f"pid-{rank}.new", f"pid-{rank}")
            if rank == 2:
                while len([name for name in os.listdir() if name.startswith("pid-") and "new" not in name]) < 4:
                    time.sleep(0.01)
                time.sleep(0.3)  # the others are in it by then
                if sys.argv[1] == "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                while True:
                    time.sleep(1)
        dist.all_reduce(torch.ones(1000))


main()
