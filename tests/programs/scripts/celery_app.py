"""Tasks of celery, and a client that has them done: python celery_app.py. Both in the current folder."""
import os
import sys

from celery import Celery

here = os.getcwd()
for name in ("queue", "control", "results"):
    os.makedirs(name, exist_ok=True)
app = Celery("celery_app", broker="filesystem://", backend=f"file://{here}/results")
app.conf.update(broker_transport_options={
    "data_folder_in": f"{here}/queue", "data_folder_out": f"{here}/queue",
    "control_folder": f"{here}/control"}, worker_proc_alive_timeout=60)


@app.task
def square(n):
    return n * n


@app.task
def fail(n):
    raise ValueError(n)


if __name__ == "__main__":
    wanted = [square.delay(n) for n in range(20)] + [fail.delay(7)]
    print([result.get(timeout=60, propagate=False, interval=0.05) for result in wanted])
    sys.stdout.flush()
