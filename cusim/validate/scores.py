"""Errors of predicted times: how far, which way, and whether a gain is told from a loss.

Nothing here knows where times come from: a published set and recordings of one's own GPU are judged alike.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

#: A difference counts as decided above this many pooled standard deviations.
DECIDED = 2.0
#: Two predictions closer than this, relative to each other, order their rows by chance.
CLOSE = 0.002
#: Rows from which a 95th percentile says more than the worst row does.
ROWS_FOR_P95 = 40


@dataclass(frozen=True, slots=True)
class Scored:
    """One row: policy *policy* of *shape* (one choice to make) in *group* (shapes alike), times in ps.

    *noise_ps* is the standard deviation of *measured_ps*. *predicted_ps* is None for a rival that predicts no time.
    *given* marks what the prediction was told: it counts in no error, but may be chosen. Rows of one policy may differ
    in tile *order* and in *cut* (tile and split-K); a row is compared with the baseline of its own order and cut.
    *occasions* holds the measured time of each occasion, where there were several.
    """

    shape: str
    group: str
    policy: str
    measured_ps: int
    noise_ps: int
    predicted_ps: int | None
    given: bool = False
    order: str = ""
    cut: str = ""
    occasions: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def rule(self) -> str:
        """Policy and order in words: what a rule that looks at nothing else can always choose."""
        return f"{self.policy} {self.order}".rstrip()


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of predicted times over *n* rows, in percent of the measured time; None where there is nothing to say.

    *worst_pct* keeps its sign; *bias_pct* is the mean signed error. *speedup_err_pts* is the median of
    |predicted - measured| speed-up over the baseline in points (100 x the ratio of times), *speedup_err_mean_pts* its
    mean. *sign_right_pct* counts, among the *decided* rows only, those predicted on the right side of the baseline;
    *close* of them are predicted so near to it that their side is chance.
    """

    n: int
    mape_pct: float | None
    median_pct: float | None
    p95_pct: float | None
    worst_pct: float | None
    bias_pct: float | None
    speedup_err_pts: float | None
    speedup_err_mean_pts: float | None
    sign_right_pct: float | None
    decided: int
    close: int


def errors(rows: Iterable[Scored], baseline: str, beyond_pct: float = 0.0) -> Errors:
    """Scores of the rows that are not given; *baseline* is the policy that speed-ups and signs are against.

    Signs are asked of differences above twice the pooled noise and above *beyond_pct* of the baseline's time.
    """
    everything = list(rows)
    judged = [row for row in everything if not row.given]
    base = {_like(row): row for row in everything if row.policy == baseline}
    signed = [found for row in judged if (found := error_pct(row)) is not None]
    sizes = [abs(found) for found in signed]
    against = [(row, base[_like(row)]) for row in judged if row.policy != baseline and _like(row) in base]
    points = [found for row, other in against if (found := speedup_error(row, other)) is not None]
    clear = [(row, other) for row, other in against if decided(row, other, beyond_pct)]
    sided = [sign_right(row, other) for row, other in clear]
    known = [right for right in sided if right is not None]
    return Errors(
        n=len(judged),
        mape_pct=_mean(sizes),
        median_pct=_median(sizes),
        p95_pct=percentile(sizes, 95) if len(sizes) >= ROWS_FOR_P95 else None,
        worst_pct=max(signed, key=abs, default=None),
        bias_pct=_mean(signed),
        speedup_err_pts=_median(points),
        speedup_err_mean_pts=_mean(points),
        sign_right_pct=_mean([100.0 * right for right in known]),
        decided=len(sided),
        close=sum(predicted_close(row, other) for row, other in clear),
    )


def _like(row: Scored) -> tuple[str, str, str]:
    """What a row shares with the one that it is compared with."""
    return row.shape, row.order, row.cut


def error_pct(row: Scored) -> float | None:
    """Predicted over measured time, less one, in percent: positive for a prediction that is too slow."""
    return None if row.predicted_ps is None else 100.0 * (row.predicted_ps / row.measured_ps - 1.0)


def speedup_error(row: Scored, base: Scored) -> float | None:
    """|predicted - measured| speed-up over *base*, in points; None without predictions of both."""
    if row.predicted_ps is None or base.predicted_ps is None:
        return None
    return 100.0 * abs(base.predicted_ps / row.predicted_ps - base.measured_ps / row.measured_ps)


def pooled_ps(one: Scored, other: Scored) -> float:
    """The pooled standard deviation of two measured times: the root of the mean of their variances."""
    return float(((one.noise_ps**2 + other.noise_ps**2) / 2) ** 0.5)


def decided(one: Scored, other: Scored, beyond_pct: float = 0.0) -> bool:
    """True when the measured difference is above twice the pooled noise, and above *beyond_pct* of *other*."""
    least = max(DECIDED * pooled_ps(one, other), beyond_pct / 100.0 * other.measured_ps)
    return abs(one.measured_ps - other.measured_ps) > least


def predicted_close(one: Scored, other: Scored) -> bool:
    """True when the predictions of two rows differ by less than :data:`CLOSE`."""
    if one.predicted_ps is None or other.predicted_ps is None:
        return False
    return abs(one.predicted_ps - other.predicted_ps) < CLOSE * min(one.predicted_ps, other.predicted_ps)


def sign_right(row: Scored, base: Scored) -> bool | None:
    """True when gain or loss against *base* is predicted as measured; no difference predicted is no sign, so wrong."""
    if row.predicted_ps is None or base.predicted_ps is None:
        return None
    return (row.predicted_ps - base.predicted_ps) * (row.measured_ps - base.measured_ps) > 0


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile of *values*, linear between neighbours."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None
