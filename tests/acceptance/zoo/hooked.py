"""Handlers with hooks around them."""

# ruff: noqa: T201 - printing is what is tested

from foliot import App, Context

app = App()


@app.before
def check(context: Context) -> None:
    print(f"before {context.handler}")
    if "refused" in context.tags:
        raise PermissionError("not today")


@app.before
async def check_again(context: Context) -> None:
    print(f"before {context.handler} again")


@app.after
async def tell(context: Context, error: BaseException | None) -> None:
    print(f"after {context.handler}: {error!r}")


@app.after
def fail(context: Context) -> None:
    raise OSError(f"no telegraph for {context.handler}")


@app.job
async def on_loop() -> str:
    print("the handler")
    return "done"


@app.job
def in_process() -> str:
    print("the handler")
    return "done"


@app.job
async def fails() -> None:
    raise ValueError("no")
