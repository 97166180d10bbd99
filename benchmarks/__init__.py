"""Benchmarks, as ratios within one run: machines are noisy, ratios less so.

Each compares our code with the plain loop that does the same algebra, or our cost with itself at another size.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from benchmarks.ceilings import ceilings_against_none
from benchmarks.cut_layer import enumeration_against_loop, null_space_cost_per_row, null_space_seconds
from benchmarks.encryption import (
    bin_sums_against_heu,
    encryption_against_heu,
    encryption_against_phe,
    products_against_heu,
    products_against_loop,
    secure_boost_tree,
)
from benchmarks.generative import grna_against_plain_loop
from benchmarks.gradients import peeling_against_cafe
from benchmarks.inversion import gia_against_one_by_one
from benchmarks.scores import cost_against_rows, esa_against_loop, pra_against_loop
from benchmarks.timing import Measured
from benchmarks.training import dp_sgd_against_plain_training
from benchmarks.wall import wall_against_none
from benchmarks.workers import workers_against_one
from plumbob.errors import BadInput

BENCHES = (
    esa_against_loop,
    pra_against_loop,
    cost_against_rows,
    gia_against_one_by_one,
    grna_against_plain_loop,
    dp_sgd_against_plain_training,
    encryption_against_phe,
    encryption_against_heu,
    products_against_loop,
    products_against_heu,
    bin_sums_against_heu,
    secure_boost_tree,
    peeling_against_cafe,
    enumeration_against_loop,
    null_space_seconds,
    null_space_cost_per_row,
    workers_against_one,
    wall_against_none,
    ceilings_against_none,
)


def run(words: str = "", console: Console | None = None) -> Iterator[Measured]:
    """Benchmarks whose name holds the words, one result after the other; what needs a file that is not here says so."""
    chosen = [bench for bench in BENCHES if words.replace(" ", "_") in bench.__name__]
    if not chosen:
        raise BadInput(f"no benchmark has '{words}' in its name; known: {', '.join(b.__name__ for b in BENCHES)}")
    for bench in chosen:
        try:
            if console is not None:
                console.print(f"{bench.__name__.replace('_', ' ')} ...")
            yield from bench()
        except BadInput as error:
            yield {"name": bench.__name__, "ratio": None, "goal": None, "size": str(error), "seconds": 0, "peak_mb": 0}


def show(measured: Measured, console: Console) -> None:
    """One line for people."""
    ratio = "not run" if measured["ratio"] is None else f"{measured['ratio']:.4g}"
    goal = "" if measured["goal"] is None else f" (goal {measured['goal']})"
    line = f"{measured['name']}: {ratio}{goal}; {measured['size']}; {measured['seconds']:.4g} s, {measured['peak_mb']:.0f} MB"
    console.print(line, highlight=False, markup=False, soft_wrap=True)
