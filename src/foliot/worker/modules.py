"""Import the user's handlers: a dotted module, seen from the working directory, or a `.py` file.

Importing runs the user's code, so it happens in a process made for it, never in the supervisor.
"""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from foliot.core.errors import FoliotError
from foliot.worker.app import App


@dataclass(eq=False)
class ModuleNotImported(FoliotError):
    """`trace` shows the user's own frames; it is empty where the module was not even found."""

    target: str
    reason: str
    trace: str = ""

    def __str__(self) -> str:
        return f"cannot import {self.target}: {self.reason}"


@dataclass(frozen=True)
class Imported:
    name: str
    path: Path | None


def import_apps(targets: Sequence[str]) -> list[App]:
    """The apps that these modules have under any name, each once, in the order of first sight."""
    apps: dict[int, App] = {}
    for target in targets:
        module = sys.modules[import_handlers(target).name]
        found = [value for value in vars(module).values() if isinstance(value, App)]
        apps |= {id(app): app for app in found}
    return list(apps.values())


def import_handlers(target: str) -> Imported:
    is_file = target.endswith(".py") or "/" in target
    module = _import_file(target) if is_file else _import_module(target)
    return Imported(module.__name__, Path(module.__file__) if module.__file__ else None)


def _import_module(target: str) -> ModuleType:
    if not all(part.isidentifier() for part in target.split(".")):
        raise ModuleNotImported(target, "name a module (shop.mail) or a file (shop/mail.py)")
    _look_in(Path.cwd())
    try:
        return importlib.import_module(target)
    except ModuleNotFoundError as missing:
        if missing.name and f"{target}.".startswith(f"{missing.name}."):
            reason = f"there is no module {missing.name} in {Path.cwd()} or the environment"
            raise ModuleNotImported(target, reason) from None
        raise _failure(target, missing) from None
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        raise _failure(target, error) from None


def _import_file(target: str) -> ModuleType:
    path = Path(target).resolve()
    if not path.is_file() or path.suffix != ".py" or not path.stem.isidentifier():
        raise ModuleNotImported(target, "there is no such Python file")
    known = sys.modules.get(path.stem)
    if known is not None:
        if known.__file__ and Path(known.__file__) == path:
            return known
        raise ModuleNotImported(target, f"its name hides the module {path.stem}: rename the file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ModuleNotImported(target, "Python cannot load it")
    _look_in(path.parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        del sys.modules[path.stem]
        raise _failure(target, error) from None
    return module


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _failure(target: str, error: BaseException) -> ModuleNotImported:
    told = traceback.TracebackException.from_exception(error)
    told.stack = traceback.StackSummary.from_list(
        frame for frame in told.stack if not _is_machinery(frame.filename)
    )
    last_line = "".join(told.format_exception_only()).strip().splitlines()[-1]
    return ModuleNotImported(target, last_line, "".join(told.format()))


def _is_machinery(filename: str) -> bool:
    return filename == __file__ or "importlib" in filename
