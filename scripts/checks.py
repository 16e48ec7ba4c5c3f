"""Format, lint, types and import rules, as CI sees them; says which failed and how to mend it."""

import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent
CHECKS = (
    ("format", ("ruff", "format", "--check", "--quiet", "."), "make format"),
    ("lint", ("ruff", "check", "--quiet", "."), "make format, then mend what is left"),
    ("types", ("mypy",), "mend the types above"),
    ("imports", ("lint-imports", "--no-logo"), "CONTRIBUTING.md says which way imports flow"),
)


def main() -> int:
    for name, command, fix in CHECKS:
        done = subprocess.run(  # noqa: S603  our own tools from our own environment
            [BIN / command[0], *command[1:]], capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.stderr.write(f"{done.stdout}{done.stderr}\n{name} failed. To mend it: {fix}.\n")
            return 1
        sys.stdout.write(f"{name}: ok\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
