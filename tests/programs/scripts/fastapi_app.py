# SPDX-License-Identifier: Apache-2.0
"""FastAPI: answers of coroutines and of threads, with a model of what is asked for."""
import asyncio

from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()


class Answer(BaseModel):
    number: int
    squares: list[int]


def squares(n):
    return [i * i for i in range(n)]


@app.get("/{n}")
async def answer(n: int) -> Answer:
    await asyncio.sleep(0.001)
    return Answer(number=n, squares=squares(50 + n % 50))


@app.get("/thread/{n}")
def in_a_thread(n: int) -> Answer:
    return Answer(number=n, squares=squares(n))
