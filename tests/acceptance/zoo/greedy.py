"""Handlers that do not end, and handlers that give what nobody can keep."""

import os

from foliot import App

app = App()


@app.job
def spin() -> None:
    while True:
        pass


@app.job
async def spin_on_loop() -> None:
    spin()


@app.job
def fork_and_spin() -> None:
    for _ in range(20):
        if os.fork() == 0:
            break
    spin()


@app.job
async def give(what: str) -> object:
    gifts: dict[str, object] = {
        "nul": "a\0b",
        "surrogate": {"text": "\ud800"},
        "not a number": [float("nan")],
        "huge": "x" * 9_000_000,
        "a set": {"deep": [1, {2}]},
    }
    return gifts[what]
