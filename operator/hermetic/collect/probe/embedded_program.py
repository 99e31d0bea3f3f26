"""The program as arguments of a Python interpreter: nothing is mounted, and the program is part of the pod's spec."""

from __future__ import annotations

from importlib import resources

PACKAGE = "hermetic.collect.probe.program"
# each after those that it imports
MODULES = ("racing", "calling", "dns", "metadata", "machine", "asking")

# `from a.b.c import d` searches no path when "a.b.c" is in `sys.modules`.
LOADER = f"""
import sys, types
package = sys.modules[{PACKAGE!r}] = types.ModuleType("program")
for name, source in zip({MODULES!r}, sys.argv[1:]):
    module = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
    sys.modules[{PACKAGE!r} + "." + name] = module
    setattr(package, name, module)
package.asking.main()
""".strip()


def command() -> list[str]:
    """`python3 -c LOADER MODULE...`, about 20 KB in all; the questions are in the environment."""
    folder = resources.files(PACKAGE)
    sources = [folder.joinpath(f"{name}.py").read_text(encoding="utf-8") for name in MODULES]
    return ["python3", "-I", "-B", "-c", LOADER, *sources]
