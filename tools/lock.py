"""Write requirements/lock.txt: every package but torch, with hashes and without any address.

python -m tools.lock        needs `uv` (pip install uv)
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tools.paths import ROOT


def wanted(project: dict) -> list[str]:
    """What the project asks for, without torch, which is pinned on its own (requirements/torch.txt says why)."""
    extras = project["optional-dependencies"]
    lines = project["dependencies"] + extras["book"] + extras["cluster"] + extras["test"]
    return [line for line in lines if not line.startswith("torch")]


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "wanted.in"
        source.write_text("\n".join(wanted(project)) + "\n" + (ROOT / "requirements" / "lock.in").read_text())
        command = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--generate-hashes"]
        command += [
            "--no-header",
            "--no-annotate",
            "--output-file",
            str(ROOT / "requirements" / "lock.txt"),
            str(source),
        ]
        try:
            return subprocess.run(command).returncode
        except FileNotFoundError:
            print("lock: uv is not there; install it with pip", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
