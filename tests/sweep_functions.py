"""What the tests of sweeps call: functions at the top level of a module that a worker process can import."""

import math
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Spec:
    name: str
    value: int = 0
    folder: str = ""
    seconds: float = 0.0


@dataclass
class Melted:
    name: str


def square(spec: Spec) -> dict:
    """The square, and a mark for every call: the mark's name holds the process that was called."""
    if spec.folder:
        mark = Path(spec.folder) / f"{spec.name}.{os.getpid()}.{time.monotonic_ns()}"
        mark.write_text("")
    print("a line that must not disturb the answers")
    time.sleep(spec.seconds)
    return {"value": spec.value**2}


def draw(spec: Spec) -> list[float]:
    import torch  # here only: most of these functions start faster without

    return torch.randn(3, generator=torch.Generator().manual_seed(spec.value)).tolist()


def threads(spec: Spec) -> int:
    import torch

    return torch.get_num_threads()


def odd_fails(spec: Spec) -> int:
    if spec.value % 2:
        raise ValueError(f"value is {spec.value};\nvalid is an even number.")
    return spec.value


def not_finite(spec: Spec) -> float:
    return math.nan


def dies(spec: Spec) -> int:
    os._exit(7)


def dies_once(spec: Spec) -> int:
    mark = Path(spec.folder) / f"died.{spec.name}"
    if not mark.exists():
        mark.write_text("")
        os._exit(7)
    return spec.value


def interrupted(spec: Spec) -> None:
    raise KeyboardInterrupt


def main_file(spec: Spec) -> list:
    """The file of the main module (a fresh Python that runs a command has none), and the parent process."""
    return [getattr(sys.modules["__main__"], "__file__", ""), os.getppid()]
