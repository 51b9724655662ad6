"""GPT-3's MLP with 768 rows on an H200: the waves of stream order and of row semaphores."""

from pathlib import Path

import cusim
from cusim.plot.save import save_figure
from cusim.plot.timeline import timeline
from cusim.report.rows import shape_of

HERE = Path(__file__).parent


def main() -> None:
    """Draws ``gpt3_mlp_stream.png`` and ``gpt3_mlp_row.png``, each kernel at its workload's own tile and order."""
    machine = cusim.load_machine("h200")
    workload = cusim.build_workload("gpt3-mlp", "h200", m=768)
    for policy in ("stream", "row"):
        choice = workload.choice(policy)
        plan = cusim.build_plan(choice.program, policy=policy, order=choice.order, flags=choice.flags)
        result = cusim.predict(choice.program, machine, plan)
        assert isinstance(result, cusim.Prediction)
        title = f"gpt3-mlp, M = 768, H200, {policy}: {result.rounds} rounds"
        save_figure(
            timeline(result.trace, shape_of(choice.program, machine), title=title), HERE / f"gpt3_mlp_{policy}.png"
        )


if __name__ == "__main__":
    main()
