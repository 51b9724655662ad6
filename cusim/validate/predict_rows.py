"""The two predictions of a row: cold, from the machine alone, and anchored to the kernels' own published times."""

from __future__ import annotations

from dataclasses import replace

from cusim.engine.predict import predict
from cusim.engine.result import Prediction
from cusim.errors import CusimError
from cusim.machine.machine import Machine
from cusim.policies.orders import Order
from cusim.policies.plan import Plan
from cusim.program.kernel import Kernel, Measured
from cusim.program.program import Program
from cusim.validate.cases import Case, Shape


def cold_ps(case: Case, machine: Machine) -> int:
    """The predicted total of a case from the machine's numbers alone, in ps."""
    return _total(case.program, machine, case.plan)


def anchored_ps(case: Case, shape: Shape, machine: Machine) -> int:
    """The predicted total of a case when the kernels of *shape* are known to take, in stream order, what they took.

    Each kernel's own time is the published one less the machine's launch gap, which lies inside it since the parts add
    up to the total. A kernel that is cut otherwise than in stream order takes the published time times the model's
    alone time of this cut over the model's alone time of that one.
    """
    times = kernel_times(case, shape, machine)
    kernels = tuple(replace(k, cost=Measured(times[k.name], machine.name, k.gemm)) for k in case.program.kernels)
    return _total(replace(case.program, kernels=kernels), machine, case.plan)


def kernel_times(case: Case, shape: Shape, machine: Machine) -> dict[str, int]:
    """The time of each kernel of a case alone, in ps, first block start to last block end, by name."""
    own = shape.stream.reading.own_ps
    assert own is not None
    times = {}
    for kernel, base, published in zip(case.program.kernels, shape.stream.program.kernels, own, strict=True):
        time = published - machine.launch.gap_ps
        if kernel.name in case.changed:
            new, old = alone_ps(kernel, case.program, machine), alone_ps(base, shape.stream.program, machine)
            time = round(time * new / old)
        times[kernel.name] = time
    return times


def alone_ps(kernel: Kernel, program: Program, machine: Machine, order: Order | None = None) -> int:
    """What the model says a kernel takes alone in *order* (row), first block start to last block end, in ps."""
    alone = Program((replace(kernel, reads=()),), program.buffers, name=kernel.name)
    found = predict(alone, machine, Plan(order={} if order is None else {kernel.name: order}))
    assert isinstance(found, Prediction)
    return found.span_ps


def _total(program: Program, machine: Machine, plan: Plan) -> int:
    found = predict(program, machine, plan)
    if not isinstance(found, Prediction):
        raise CusimError(f"{program.name}: the published plan {plan.label} is predicted to deadlock")
    return found.total_ps
