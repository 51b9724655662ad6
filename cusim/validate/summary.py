"""The figures of one table: errors and ranking together, under the names that documents use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cusim.validate.ranking import Ranking, rank
from cusim.validate.regret import Choice, first_fastest
from cusim.validate.scores import Errors, Scored, errors

#: Decimals of the figures in documents: what a reader can use, and what stays alike between platforms.
_DECIMALS = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of the predicted times and the ranking that follows from them. *best* holds the errors of each policy at
    its own best order against the baseline at its own, where rows come in several orders.
    """

    errors: Errors
    ranking: Ranking
    best: Errors | None = None

    def metric(self, name: str) -> float | None:
        """One figure by its name in :meth:`to_json`."""
        value = self.to_json()[name]
        assert value is None or isinstance(value, (int, float))
        return value

    def to_json(self) -> dict[str, Any]:
        """The summary as one flat object, rounded; null where there is nothing to say."""
        e, r = self.errors, self.ranking
        figures: dict[str, float | None] = {
            "mape_pct": e.mape_pct,
            "median_pct": e.median_pct,
            "worst_pct": e.worst_pct,
            "bias_pct": e.bias_pct,
            "speedup_err_pts": e.speedup_err_pts,
            "speedup_err_mean_pts": e.speedup_err_mean_pts,
            "sign_right_pct": e.sign_right_pct,
            "rank_score": r.score,
            "top1_pct": r.top1_pct,
            "regret_pct": r.regret_pct,
            "p95_pct": e.p95_pct,
        }
        rounded = {name: None if value is None else round(value, _DECIMALS) for name, value in figures.items()}
        interval = None if r.interval is None else [round(end, _DECIMALS) for end in r.interval]
        counts = {
            "n": e.n,
            "decided_rows": e.decided,
            "close_rows": e.close,
            "decided_pairs": r.pairs.decided,
            "concordant_pairs": r.pairs.concordant,
            "discordant_pairs": r.pairs.discordant,
            "alike_pairs": r.pairs.alike,
            "close_pairs": r.pairs.close,
            "tied_pairs": r.pairs.tied,
            "shapes": r.shapes,
            "empty_shapes": r.empty_shapes,
        }
        return {**rounded, "rank_interval": interval, **counts, **({} if self.best is None else self._occasions())}

    def _occasions(self) -> dict[str, Any]:
        """Figures that only recordings have: best of orders, and regret by how it was read."""
        best, r = self.best, self.ranking
        assert best is not None
        figures = {
            "best_speedup_err_pts": best.speedup_err_pts,
            "best_speedup_err_mean_pts": best.speedup_err_mean_pts,
            "best_sign_right_pct": best.sign_right_pct,
            "pooled_regret_pct": r.pooled_regret_pct,
            "pairs_right_pct": r.pairs.right_pct,
        }
        rounded = {name: None if value is None else round(value, _DECIMALS) for name, value in figures.items()}
        return {**rounded, "best_decided": best.decided, "choices": r.choices, "across_shapes": r.across_shapes}


def summarise(rows: Sequence[Scored], baseline: str, choose: Choice = first_fastest) -> Summary:
    """Judges *rows*; *choose* is what is run of a shape: the fastest predicted, or a rival's own pick."""
    return Summary(errors(rows, baseline), rank(rows, choose))


def by_policy(rows: Sequence[Scored], baseline: str, beyond_pct: float = 0.0) -> dict[str, Errors]:
    """Errors of each policy alone, in the order in which policies first come; policies only given are left out."""
    found = {}
    for policy in dict.fromkeys(row.policy for row in rows if not row.given):
        # The baseline's rows stay, as given, so that speed-ups and signs have something to be against.
        kept = [row for row in rows if row.policy in (policy, baseline)]
        found[policy] = errors([_only_base(row, policy) for row in kept], baseline, beyond_pct)
    return found


def _only_base(row: Scored, policy: str) -> Scored:
    if row.policy == policy:
        return row
    return replace(row, given=True)
