"""What the model aims at on the published rows, and what to look at next where it misses."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, Literal

from cusim.validate.summary import Summary


@dataclass(frozen=True, slots=True)
class Aim:
    """A figure of a summary (*metric*, as in its JSON) that should be *relation* *target*; *hypothesis* says in words
    why it may be missed, and what would tell.
    """

    title: str
    metric: str
    relation: Literal["<=", ">="]
    target: float
    hypothesis: str

    def to_json(self, summary: Summary) -> dict[str, Any]:
        """The aim with the figure that was reached, and whether that is enough."""
        value = summary.metric(self.metric)
        met = value is not None and _RELATIONS[self.relation](value, self.target)
        return {
            "title": self.title,
            "metric": self.metric,
            "relation": self.relation,
            "target": self.target,
            "value": value,
            "met": met,
            "hypothesis": None if met else self.hypothesis,
        }


_RELATIONS = {"<=": operator.le, ">=": operator.ge}
_WAITS = (
    "a wait costs more than the machine says where one block holds an SM. From m = 512 on tile takes longer than "
    "row by about 1.1 us for each of a consumer tile's 24 waits (median over the sizes; on the A100 about 0.6), "
    "while satisfied_ps, scaled from an H200, is 0.14 us, and a throttled pipe gives the time of waits back to other "
    "blocks. Below m = 64 it is the other way: tile gains 4 %, row 1 %; with R the resident consumer blocks have "
    "loaded their first B tiles (4.7 MB, 6 us of HBM time) before they wait. Timing 24 satisfied waits in the "
    "main loop of one block an SM, with and without R, would tell"
)
_SIGNS = (
    "the wrong signs are rows that are predicted within 0.1 % of stream. At m = 2048 and 2304 tile loses 4 to 6 %"
    " to its waits (see the cost of a wait) and row up to 2 %. At m = 2560 both gain 2 to 4 % although stream "
    "leaves no slot idle: measured below the bound, so their blocks ran faster than stream's, which a campaign "
    "with the SM clock recorded would show"
)
_FASTER = (
    "both rows of m = 1536 lie below the work-conserving bound. Published stream runs take 181 to 188 us for a "
    "round of K = 6144 up to m = 2304 and at 2816, but 148 to 160 at m = 2560 and 3072 with the same tiles, and "
    "row runs 155 to 163 from m = 1536 on: blocks ran at another speed, which no scheduling gives. A campaign "
    "with the SM clock recorded would tell. Of the rows above the bound, tile is predicted too fast by what its "
    "waits cost: about 0.6 us each"
)
#: Aims by prediction and table. What the rivals reach stands beside them in the report.
AIMS: dict[tuple[str, str], tuple[Aim, ...]] = {
    ("anchored", "v100"): (
        Aim("time of policies not seen", "mape_pct", "<=", 4.0, _WAITS),
        Aim("cost of the chosen policy", "regret_pct", "<=", 0.5, _WAITS),
        Aim("gain told from loss", "sign_right_pct", ">=", 90.0, _SIGNS),
    ),
    ("anchored", "a100_unchanged"): (Aim("time of policies not seen", "mape_pct", "<=", 6.0, _FASTER),),
}


def aims_of(prediction: str, table: str) -> tuple[Aim, ...]:
    """The aims of one table; none for most."""
    return AIMS.get((prediction, table), ())
