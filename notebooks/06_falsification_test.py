# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The falsification test
#
# :::{admonition} In short
# :class: tip
# **Question.** Does a deep random ReLU network with recentering single out one sample of the batch, at a right angle to all the
# others, as early, as generally and as strongly as the paper's claim needs? And does it with rescaling switched on?
#
# **Answer.** At depth 30, where the review wants to decide, the verdict is
# {glue:text}`verdict-review-test-depth-30`: over batches of 12 and more the median angle is {glue:text}`early-angle-low:.0f`° to
# {glue:text}`early-angle-high:.0f`° at depth {glue:text}`early-depth`. By depth 200 it is
# {glue:text}`verdict-review-test-depth-200`, with {glue:text}`late-angle-low:.1f`° to {glue:text}`late-angle-high:.1f`° at depth
# {glue:text}`late-depth`, where all rules hold {glue:text}`late-from`. With rescaling on, that is, for batch normalization itself, the claim of an orthogonal escaped
# point is {glue:text}`verdict-full-batch-norm-escaped-point`: at depth {glue:text}`late-depth` the median angle is
# {glue:text}`rescaled-angle-low:.0f`° to {glue:text}`rescaled-angle-high:.0f`°. That the outlier changes from one initialization to the
# next, on one and the same batch, is {glue:text}`verdict-outlier-identity-unstable`.
# :::

# %% tags=["parameters", "hide-input"]
device = "auto"
seed = 0
results_dir = "build/runs"
batch_sizes = [4, 6, 8, 12, 16, 24, 32, 64]
widths = [64, 256, 1024]
depths = [10, 30, 60, 100, 200]
n_seeds = 64

# %% tags=["hide-input"]
from bnlib.parameters import check, integer, integers

parameters = check(
    globals(),
    batch_sizes=integers(minimum=2),
    widths=integers(minimum=1),
    depths=integers(minimum=1),
    n_seeds=integer(minimum=2),
)

# %% tags=["hide-input"]
import math

import numpy as np

from bnlib import figures, records, seeds
from bnlib.estimates import onset_per_doubling, onset_summary
from bnlib.falsification import PILOT_BATCH_SIZES, Thresholds, growth_table, run_cell, verdict_at
from bnlib.layers import Stages
from bnlib.outlier_identity import identity
from bnlib.outlier_states import outlier_state, pushed, symmetric_state
from bnlib.progress import progress

run = records.start("06_falsification_test", parameters)
sizes, widths, depths = sorted(parameters.batch_sizes), sorted(parameters.widths), sorted(parameters.depths)
last = depths[-1]
early = 30 if 30 in depths else depths[0]
large = [n for n in sizes if n >= 12] or sizes
middle_width = widths[len(widths) // 2]
thresholds = Thresholds(**records.load_claims()["review-test-depth-30"]["thresholds"])
run.record("thresholds", vars(thresholds))


def select(rows, **wanted):
    """The rows of a table of dictionaries whose entries are the wanted ones."""
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


# %% [markdown]
# ## The test, turned into rules
#
# The review ends with a recipe for its own refutation ("What would settle it"): take a fully connected ReLU network with
# recentering and without rescaling, standard Gaussian weights and a random batch of size $n$; at depth 30 compare the sample of
# largest norm with the mean of the others. The paper's claim {cite}`nachum2024` predicts an angle that approaches 90°, and a
# ratio of norms that grows at least linearly in $n$. If either fails, or if over many seeds no single outlier emerges, the
# central claim is refuted {cite}`pith2026`.
#
# A recipe in words leaves choices open. These are **ours**:
#
# * *Network.* All layers have the same width $d$; the batch is Gaussian, of dimension $d$; both are drawn afresh for every
#   draw. Depth counts linear layers, and the representation is read after the last ReLU. The paper's own set-up is not
#   at hand, and the review names neither width nor batch size, so both are varied.
# * *Weight variance.* It does not matter here. Recentering and ReLU are positively homogeneous: with $\lambda > 0$,
#   $\mathrm{ReLU}(G\,\lambda H) = \lambda\,\mathrm{ReLU}(GH)$. A different $\sigma^2$ multiplies every layer by a constant, which no
#   angle and no ratio of norms can see.
# * *"Approaches 90°."* The median angle over the draws is at least 85°. The threshold is not innocent at small $n$: further
#   down the state that these networks settle in is computed, and its angle at $n = 7$ is {glue:text}`angle-at-seven:.2f`°.
# * *"A single outlier."* In the median the largest norm is at least twice the second-largest.
# * *"At least linear."* The median norm ratio is fitted by a power $n^p$; the 95 percent interval of $p$ must reach up to 1 and
#   not down below 0.9.
#
# How well a median is known matters, because a few dozen draws do not fix it to a degree. Order the $m$ draws,
# $a_{(1)} \le \dots \le a_{(m)}$. The true median lies below $a_{(k)}$ only if fewer than $k$ draws fall below it, and each does so with
# probability one half, so
#
# $$
# P\bigl(a_{(k)} \le \text{median} \le a_{(m+1-k)}\bigr) \;\ge\; 1 - 2\,P\bigl(\mathrm{Binomial}(m, \tfrac12) < k\bigr),
# $$ (eq-06-interval)
#
# whatever the distribution. With the largest $k$ that leaves 95 percent this is the interval used on this page. A rule *holds* for a
# cell if the whole interval is on the good side of the threshold, *fails* if all of it is on the other, and is *undecided*
# in between.
#
# :::{admonition} The verdict at one depth, over all batch sizes and widths
# The claim speaks about growing $n$, so it gets the benefit of the doubt for small batches. Let $n_0$ be the smallest batch size
# such that, at **every** width, **every** cell with $n \ge n_0$ holds and the growth from $n_0$ on is at least linear (three batch
# sizes is the least that growth can be judged by).
# * *confirmed*: $n_0$ is the smallest batch size of the map;
# * *confirmed under conditions*: $n_0$ is larger; the condition is $n \ge n_0$;
# * *refuted*: there is no $n_0$, because the largest batch size fails at some width, or because the growth is known to be slower than
#   linear, at some width, from every batch size on from which all cells hold;
# * *inconclusive* otherwise: the intervals straddle a threshold, or too few batch sizes hold to judge growth by.
#
# This is the only rule: it makes the verdicts at depths 30 and 200, and the rows of the table below.
# :::
#
# The thresholds and criteria stand in `book/claims.yml`. They were written before the run that this page shows, but not blindly: pilots with
# the seeds 0, 1000 and 2412 had been seen, and earlier notes printed outcomes. After the first complete runs the number of draws was raised
# from 48 to 64, and referees had several criteria tightened, this rule among them; the run of record uses another seed, and its
# verdicts stand as they come. Batch sizes that no pilot had looked at, at any width, when the criteria were first written are marked as
# **predictions**: at laptop size that is 24. So 24 was a prediction when the criteria were written; full runs with other seeds have
# since shown it, and the run of record repeats it with another seed.

# %% tags=["hide-input"]
figures.table(
    [
        ("angle to the mean of the others, degrees", thresholds.angle_deg, "“approaches 90 degrees”"),
        ("largest over second-largest norm", thresholds.top_over_second, "“single outlier”"),
        ("exponent of the norm ratio in n", thresholds.exponent, "“at least linearly in n”"),
        ("tolerance of that exponent's lower end", thresholds.exponent_margin, "ours"),
        ("layers in a row that make a passage, or a return", thresholds.hold, "ours"),
    ],
    header=("quantity", "threshold", "the review's words"),
    caption="The rules, as numbers.",
)

# %% tags=["hide-input"]
recentered, full = Stages.parse("RC+NL"), Stages.parse("RC+RS+NL")
parts = {recentered: {}, full: {}}
todo = [(stages, n, width) for stages in parts for n in sizes for width in widths]
for stages, n, width in progress(todo, "cells"):
    parts[stages][n, width] = run.resume(
        f"map-{stages.name}-{n}-{width}",
        lambda stages=stages, n=n, width=width: run_cell(
            n,
            width,
            depths,
            parameters.n_seeds,
            stages,
            thresholds=thresholds,
            generator=run.generator("map", stages.name, n, width),
        ),
    )

cells = [cell for part in parts[recentered].values() for cell in part["cells"]]
details = [detail for part in parts[recentered].values() for detail in part["details"]]
bootstrap = np.random.default_rng(seeds.derive_seed(parameters.seed, "bootstrap"))
growth = [row for depth in depths for row in growth_table(parts[recentered], depth, generator=bootstrap)]
judgments = [verdict_at(details, growth, depth, thresholds) for depth in depths]
run.record("cells", cells)
run.record("details", details)
run.record("growth", growth)
run.record("judgments", judgments)
run.record("verdict_at_depth", {judgment["depth"]: judgment["verdict"] for judgment in judgments})

cells_with_rescaling = [cell for part in parts[full].values() for cell in part["cells"]]
details_with_rescaling = [detail for part in parts[full].values() for detail in part["details"]]
growth_with_rescaling = [row for depth in depths for row in growth_table(parts[full], depth, generator=bootstrap)]
judgments_with_rescaling = [
    verdict_at(details_with_rescaling, growth_with_rescaling, depth, thresholds) for depth in depths
]
run.record("cells_with_rescaling", cells_with_rescaling)
run.record("details_with_rescaling", details_with_rescaling)
run.record(
    "verdict_with_rescaling_at_depth", {judgment["depth"]: judgment["verdict"] for judgment in judgments_with_rescaling}
)

summary = {"early-depth": early, "late-depth": last, "draws": parameters.n_seeds}
for name, rows, depth, chosen in (
    ("early", cells, early, large),
    ("late", cells, last, large),
    ("rescaled", cells_with_rescaling, last, sizes),
):
    angles = [c["angle_deg"] for c in rows if c["depth"] == depth and c["n"] in chosen and c["angle_deg"] is not None]
    summary |= {f"{name}-angle-low": min(angles, default=None), f"{name}-angle-high": max(angles, default=None)}
held_from = select(judgments, depth=last)[0]["from_n"]
summary["late-from"] = "for no batch size" if held_from is None else f"from n = {held_from} on"
run.record("summary", summary)
for name, value in summary.items():
    if value is not None:
        run.glue(name, f"summary['{name}']")

# %% [markdown]
# ## The literal test, at depth 30
#
# {numref}`fig-06-literal` shows the test as the review states it, cell by cell: above the angle, below the norm ratio. Two lines go with
# the ratio. The upper one is $n-1$, the ratio in Definition 12 of the paper. The lower one, $(n-2)/3$, is the reciprocal of the
# bound that Theorem 11 gives for the simplified model; both are linear in $n$.

# %% mystnb={"figure": {"caption": "The literal test. Above: median angle between the sample of largest norm and the mean of the others, with the range from the 10th to the 90th percentile of the draws; the dashed line is the threshold. Below: median ratio of their norms with its 95 percent interval, on logarithmic axes, where a power of $n$ is a straight line; compare the slopes with the two linear laws.", "name": "fig-06-literal"}, "image": {"alt": "Two panels over batch size on a logarithmic axis, one curve for each width. The upper one has angles in degrees with bars and a dashed line at 85 degrees, the lower one norm ratios with two straight reference lines."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, sharex=True)
upper, lower = axes[:, 0]
for index, width in enumerate(widths):
    style, shift = figures.line_style(index), 1 + 0.03 * (index - (len(widths) - 1) / 2)
    row, interval = select(cells, width=width, depth=early), select(details, width=width, depth=early)
    for panel, name, low, high, source in (
        (upper, "angle_deg", "angle_deg_q10", "angle_deg_q90", row),
        (lower, "norm_ratio", "ratio_low", "ratio_high", interval),
    ):
        middle = np.array([c[name] for c in row], dtype=float)
        ends = np.array([[c[low] for c in source], [c[high] for c in source]], dtype=float)
        panel.errorbar(
            np.array(sizes) * shift,
            middle,
            np.abs(ends - middle),
            label=f"width {width}",
            capsize=2,
            elinewidth=1,
            **style,
        )
upper.axhline(thresholds.angle_deg, color="black", linestyle="--", linewidth=1)
upper.set(ylabel=f"angle at depth {early}, degrees", ylim=(50, 92))
upper.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(3, len(widths)), columnspacing=1)
line = np.geomspace(max(3, sizes[0]), max(4, sizes[-1]), 50)
lower.plot(line, line - 1, color="black", linestyle=":", linewidth=1)
lower.plot(line, (line - 2) / 3, color="black", linestyle=":", linewidth=1)
lower.annotate("$n-1$", (line[-1], line[-1] - 1), xytext=(3, -3), textcoords="offset points", annotation_clip=False)
lower.annotate(
    "$(n-2)/3$", (line[-1], (line[-1] - 2) / 3), xytext=(3, -3), textcoords="offset points", annotation_clip=False
)
lower.set(xscale="log", yscale="log", xlabel="batch size n", ylabel=f"norm ratio at depth {early}")
lower.set_xticks(sizes, [str(n) for n in sizes])
lower.minorticks_off()
figures.show(figure)

# %% tags=["hide-input"]
run.judge("review-test-depth-30")

# %% [markdown]
# Taken alone, this settles the literal question: at depth 30 the verdict is {glue:text}`verdict-review-test-depth-30`. The rule leaves
# $n_0$ free and refutes only by the largest batches or by their growth, so small batches could not be to blame. But an asymptotic statement ("through the layers the
# representation converges") is not judged by stopping early. The fair question is where, in batch size, width and depth, it holds.
#
# ## The map
#
# {numref}`fig-06-map` has the median angle for every batch size, width and depth.

# %% mystnb={"figure": {"caption": "Median angle between the sample of largest norm and the mean of the others, in degrees, with recentering and without rescaling. One panel for each width; batch size from top to bottom, depth from left to right. Follow a row to the right to see whether and when the batch reaches 85 degrees, and compare the same place in the three panels for the effect of the width.", "name": "fig-06-map"}, "image": {"alt": "Heat maps, one below the other for each width, with batch sizes as rows and depths as columns; every cell holds its median angle in degrees."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=len(widths), height=3.0)
for panel, width in zip(axes[:, 0], widths, strict=True):
    table = [[select(cells, n=n, width=width, depth=depth)[0]["angle_deg"] for depth in depths] for n in sizes]
    figures.heat_map(
        panel,
        np.array(table, dtype=float),
        rows=sizes,
        columns=depths,
        row_label="batch size n",
        column_label="depth",
        value_label="angle, degrees",
        limits=(55, 90),
    )
    panel.set_title(f"width {width}")
figures.show(figure)

# %% tags=["hide-input"]
figures.table(
    [
        tuple(judgment[key] for key in ("depth", "verdict", "from_n", "holding", "undecided", "failing"))
        for judgment in judgments
    ],
    header=("depth", "verdict", "holds from n", "cells that hold", "undecided", "fail"),
    caption="The rules applied at each depth over all batch sizes and widths (recentering, no rescaling).",
)
exponents = {
    depth: [row for width in widths for row in select(growth, depth=depth, width=width, from_n=large[0])]
    for depth in depths
}
figures.table(
    [
        (depth, *(f"{row['exponent']:.2f} [{row['low']:.2f}, {row['high']:.2f}]" for row in rows))
        for depth, rows in exponents.items()
        if rows
    ],
    header=("depth", *(f"width {width}" for width in widths)),
    caption=f"Exponent of the norm ratio as a power of n, from n = {large[0]} on, with its 95 percent interval.",
)

# %% tags=["hide-input"]
run.judge("review-test-depth-200", "theorem-11-bounds-in-gaussian-networks")

# %% [markdown]
# The second verdict answers a complaint of the review (major comment 4): nothing quantitative ties the simplified model of chapter 4 to
# Gaussian networks. Here are Theorem 11's own bounds, an angle gap of at most $\sqrt{2\pi}/(n-2)$ and a norm ratio of at
# least $(n-2)/3$, held against Gaussian networks. That the gap is meant in radians is our reading. As a test the bounds are of little use for
# small batches: at $n = 8$ a gap of 24° is allowed, and the symmetric state below, which has no outlier, misses that by less than a degree.
# They are of more use for large ones (2.3° at $n = 64$). Hence the criterion has a second level, "under conditions", for
# batches of 16 and more. "Measured" shows the largest gap in units of its bound, for batches of 8 and more and of 16 and more, and
# the smallest ratio in units of its own, both at the pessimistic end of their intervals.
#
# Every cell is in the next table.

# %% tags=["hide-cell"]
header = ("n", "width", "depth", "angle", "10 %", "90 %", "norm ratio", "top/second", "share > 85°", "draws")
figures.table(
    [tuple(cell.values()) for cell in cells],
    header=header,
    caption="All cells without rescaling; angles in degrees, medians.",
)

# %% [markdown]
# ## Along the depth
#
# Medians at a few depths hide that the draws of one cell are not alike. In {numref}`fig-06-depth` the bands hold the middle 80 percent of
# the draws: where a band reaches from the level of the input to the level of the outlier, some draws have found it and others have not.

# %% mystnb={"figure": {"caption": "Recentering without rescaling, along the depth. Above: angle between the sample of largest norm and the mean of the others; below: ratio of their norms over $n-1$. Lines are medians, bands the 10th to the 90th percentile of the draws. Dotted lines on the right: the outlier state at infinite width where it exists, computed below.", "name": "fig-06-depth"}, "image": {"alt": "Two panels over depth, a line with a band for each of a few batch sizes. The upper one has angles in degrees, the lower one norm ratios divided by n minus one."}} tags=["hide-input"]
states = {n: outlier_state(n) for n in sizes if n >= 3}
run.record("angle_deg_at_seven", math.degrees(outlier_state(7).angle))
run.record("smallest_batch_with_outlier_state", next(n for n in range(3, 20) if outlier_state(n) is not None))
run.glue("angle-at-seven", "angle_deg_at_seven")
run.glue("smallest-state", "smallest_batch_with_outlier_state")
shown = [n for n in sizes if n in (4, 8, 16, 64)] or sizes[:4]
layers = range(1, last + 1)
figure, axes = figures.new_figure(rows=2, sharex=True)
for panel, name in ((axes[0, 0], "angle_deg"), (axes[1, 0], "norm_ratio")):
    scale = {n: n - 1 if name == "norm_ratio" else 1 for n in shown}
    curve = {n: np.array(parts[recentered][n, middle_width]["curves"][name], dtype=float) / scale[n] for n in shown}
    figures.curves(
        panel,
        layers,
        [(f"n = {n}", curve[n][1]) for n in shown],
        bands=[(curve[n][0], curve[n][2]) for n in shown],
    )
    for index, n in enumerate(shown):
        if states.get(n) is not None:
            level = math.degrees(states[n].angle) if name == "angle_deg" else states[n].norm_ratio / scale[n]
            panel.plot(
                [0.93 * last, 1.03 * last], [level, level], color=figures.COLORS[index], linestyle=":", linewidth=2
            )
axes[0, 0].get_legend().remove()
axes[0, 0].set(ylabel="angle, degrees", ylim=(50, 92), title=f"width {middle_width}")
axes[1, 0].set(xlabel="depth", ylabel="norm ratio over n − 1")
figures.show(figure)

# %% [markdown]
# ## What there is to find: the outlier state at infinite width
#
# How large an angle *can* a batch of 8 reach? Let the width go to infinity. Then the Gram matrix $K = XX^\top$ of the batch follows a
# deterministic map: recenter, and apply the arc-cosine kernel {cite}`cho2009` to every entry,
#
# $$
# K \;\mapsto\; V(GKG), \qquad V(K)_{ij} = \sqrt{K_{ii}K_{jj}}\; J\!\left(\frac{K_{ij}}{\sqrt{K_{ii}K_{jj}}}\right).
# $$ (eq-06-map)
#
# Look for states in which one sample is special and the $m = n-1$ others are equivalent. They have four inner products:
# $a = x_1\!\cdot\! x_1$, $b = x_i\!\cdot\! x_i$, $c = x_i\!\cdot\! x_j$ and $e = x_1\!\cdot\! x_i$. With $s = (a + m e)/n$ and
# $t = (e + b + (m-1)c)/n$, their inner products with the batch mean, and $r = (s + m t)/n$, the mean's square, recentering makes them
#
# $$
# a - 2s + r, \qquad b - 2t + r, \qquad c - 2t + r, \qquad e - s - t + r ,
# $$ (eq-06-four)
#
# and $V$ maps the four to four again. Iterating this from a tight cluster costs nothing, and either settles in a state with an outlier
# or loses it. This is a **calculation at infinite width**; the table holds it against the networks of the map, at the largest
# depth, which are **simulated at finite width**. Where a row is empty the outlier dissolves.

# %% tags=["hide-input"]
against, table = [], []
for n in sizes:
    state = states.get(n)
    name = f"{n}" if n in PILOT_BATCH_SIZES else f"{n}*"
    if state is None:
        table.append((name, *[None] * (3 + len(widths))))
        continue
    state_angle, state_cluster = math.degrees(state.angle), math.degrees(state.cluster_angle)
    for cell, detail in zip(select(cells, n=n), select(details, n=n), strict=True):
        against.append(
            {key: cell[key] for key in ("n", "width", "depth", "angle_deg", "norm_ratio")}
            | {key: detail[key] for key in ("angle_low", "angle_high", "ratio_low", "ratio_high")}
            | {"state_angle_deg": state_angle, "state_norm_ratio": state.norm_ratio}
            | {"prediction": n not in PILOT_BATCH_SIZES}
        )
    measured = [select(cells, n=n, width=width, depth=last)[0] for width in widths]
    spoken = [f"{c['angle_deg'] or math.nan:.2f}, {c['norm_ratio'] or math.nan:.2f}" for c in measured]
    table.append((name, state_angle, state.norm_ratio, state_cluster, *spoken))
run.record("against_infinite_width", against)
figures.table(
    table,
    header=("n", "angle", "norm ratio", "cluster", *(f"width {width}" for width in widths)),
    caption=(
        "The outlier state at infinite width: angle to the mean of the others, norm ratio to it, and angle between two of the "
        f"others. Then the medians of angle and norm ratio at depth {last}, for each width. Angles in degrees; a star marks a "
        "prediction."
    ),
)

# %% tags=["hide-input"]
run.judge("test-batches-up-to-six", "prediction-batch-of-24")

# %% [markdown]
# The smallest batch in which the iteration keeps an outlier is $n =$ {glue:text}`smallest-state`. That smaller ones lose it is a numerical
# observation about one starting point here, not a proof. Compare the norm ratio with $n - 1$: if networks are in this state, "at least
# linear" is what to expect. And the state sets the limit of the angle: the review's 90° is approached in $n$, not only in depth.
#
# ## When: the onset, and whether it lasts
#
# Call *onset* the first layer of the first ten consecutive layers above 85°. A draw without one by the last layer is *censored*: it is
# counted as later than all others, never dropped, so medians and the intervals of {eq}`eq-06-interval` need no model. A *return* is a run of ten
# layers not above 85° after the onset. A draw whose onset comes late has no time to return; a draw is called *settled* if its onset lies at
# least 50 layers before the last, and only settled draws count for returns. The share of returns gets the exact interval of a binomial
# share (Clopper and Pearson, two-sided, 95 percent). If none of 64 settled draws returns, its upper end is 5.6 percent, so "one draw in
# twenty" cannot be known better than that from one cell; the criterion asks for an upper end of at most 6 percent in every cell, which
# takes at least 60 settled draws. "Under conditions" means the same for widths of 256 and more.
#
# What should the width do? In an infinitely wide network the Gram matrix does not fluctuate, and a batch whose samples are
# equivalent stays so for ever. A finite width $d$ adds, layer by layer, relative fluctuations of the norms of order $1/\sqrt d$. A later section
# shows that in a large batch a relative excess $\epsilon$ of one norm grows by about $\epsilon^2/(2(\pi-1))$ a layer. Fluctuations
# that add up as a random walk give $\epsilon \sim \sqrt{t/d}$ after $t$ layers, and they take over when $t\,\epsilon \sim 2(\pi-1)$, that is, at
#
# $$
# t \;\sim\; \bigl(4(\pi-1)^2\, d\bigr)^{1/3}.
# $$ (eq-06-onset)
#
# The argument is a heuristic, for large batches: a power law in the width with a small exponent, followed by the time the escape itself
# takes. In a small batch the symmetric state pulls back, small fluctuations die out, and the network has to wait for a large
# one: there the onset should grow much faster with the width. A logarithm would mean that the escape starts from a
# perturbation that is there at the input and grows exponentially.

# %% mystnb={"figure": {"caption": "Onset depth against width, recentering without rescaling. Points are medians over draws, bars their 95 percent intervals; a triangle at the upper edge is a median, and an open end of a bar a bound, beyond the last layer. On these axes a logarithmic law is a straight line. Batches too small for an outlier state are left out.", "name": "fig-06-onset"}, "image": {"alt": "Onset depth in layers over network width on a logarithmic axis, one curve with error bars for each batch size from 8 on; triangles at the upper edge mark medians beyond the run."}} tags=["hide-input"]
onset = []
for (n, width), part in parts[recentered].items():
    found = onset_summary(part["onsets"], part["returned"], latest=last - 50)
    onset.append({"n": n, "width": width, "depth": last, **found, "passed": found["draws"] - found["censored"]})
run.record("onset", onset)
lists = {n: [parts[recentered][n, width]["onsets"] for width in widths] for n in large}
doubling = onset_per_doubling(lists, widths, last, generator=bootstrap)
run.record("onset_per_doubling", doubling and {k: vars(v) if hasattr(v, "value") else v for k, v in doubling.items()})

figure, axes = figures.new_figure(height=3.8)
chosen = [n for n in sizes if states.get(n) is not None] or sizes
for index, n in enumerate(chosen):
    rows = select(onset, n=n)
    middle = np.array([row["median"] for row in rows], dtype=float)
    low = np.array([row["low"] or math.nan for row in rows], dtype=float)
    high = np.array([row["high"] or last for row in rows], dtype=float)
    at = np.array(widths) * (1 + 0.05 * (index - (len(chosen) - 1) / 2))
    bars = np.nan_to_num(np.stack([middle - low, high - middle]))
    axes[0, 0].errorbar(
        at, middle, np.maximum(bars, 0), label=f"n = {n}", capsize=2, elinewidth=1, **figures.line_style(index)
    )
    late = np.isnan(middle)
    axes[0, 0].plot(
        at[late], np.full(late.sum(), last), "^", color=figures.COLORS[index % len(figures.COLORS)], markersize=8
    )
axes[0, 0].set(xscale="log", xlabel="width", ylabel="onset depth, layers", ylim=(0, 1.05 * last))
axes[0, 0].set_xticks(widths, [str(width) for width in widths])
axes[0, 0].minorticks_off()
axes[0, 0].legend(ncols=2)
figures.show(figure)

# %% tags=["hide-input"]
figures.table(
    [tuple(row[key] for key in ("n", "width", "median", "low", "high", "censored", "draws")) for row in onset],
    header=("n", "width", "median onset", "95 % from", "to", "censored", "draws"),
    caption=f"Onsets in layers, watched to depth {last}. A dash is a number beyond that depth.",
)
figures.table(
    [
        (
            *(row[key] for key in ("n", "width", "settled", "returned")),
            *(None if row[key] is None else 100 * row[key] for key in ("returned_low", "returned_high")),
        )
        for row in onset
    ],
    header=("n", "width", "settled", "returned", "% from", "to"),
    caption="Settled draws, those of them that returned, and the 95 percent interval of their share, in percent.",
)

# %% tags=["hide-input"]
run.judge("onset-logarithmic-in-width", "outlier-stays")

# %% [markdown]
# The first verdict compares, over batches of 12 and more, how many layers a doubling of the width costs among the narrow and among
# the wide networks of the map ("measured" lists the two; the spread is the interval of their difference, which must lie within
# 3 layers of zero for a logarithm and outside for its refutation). Three widths can tell a straight line
# from a bent one; they cannot tell a power law from a law that is flat as long as the fluctuations are large and rises afterwards.
#
# ## The same with rescaling on
#
# The essay says that the escaped point appears when *all three* components of batch normalization are present. The paper's
# abstract says: recentering and the non-linearity. The two differ by one stage, which is easily switched on:
# {numref}`fig-06-beside` shows both, for the same batch sizes and width.

# %% mystnb={"figure": {"caption": "Rescaling off (solid) beside rescaling on (dashed, full batch normalization), for three batch sizes. Above: angle between the sample of largest norm and the mean of the others. Below: largest norm over the median norm of the others, on a logarithmic axis. Lines are medians, bands the 10th to the 90th percentile of the draws.", "name": "fig-06-beside"}, "image": {"alt": "Two panels over depth. For each of three batch sizes a solid and a dashed line with bands: angles in degrees above, largest norm over median norm on a logarithmic axis below."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, sharex=True)
beside = [n for n in sizes if n in (8, 16, 64)] or sizes[:3]
for panel, name in ((axes[0, 0], "angle_deg"), (axes[1, 0], "top_over_median")):
    for index, n in enumerate(beside):
        for stages, dash in ((recentered, "-"), (full, "--")):
            low, middle, high = np.array(parts[stages][n, middle_width]["curves"][name], dtype=float)
            label = f"n = {n}, RS {'on' if stages is full else 'off'}"
            style = figures.line_style(index) | {"linestyle": dash}
            panel.plot(layers, middle, label=label, markevery=max(1, last // 8), **style)
            panel.fill_between(layers, low, high, color=figures.COLORS[index], alpha=0.15, linewidth=0)
axes[0, 0].set(ylabel="angle, degrees", ylim=(50, 92), title=f"width {middle_width}")
axes[1, 0].set(xlabel="depth", ylabel="largest norm / median")
# A single sample besides the largest may be zero, and then no ratio is finite.
axes[1, 0].set_yscale("log" if np.isfinite(axes[1, 0].dataLim.ymax) else "linear")
handles, labels = axes[1, 0].get_legend_handles_labels()
axes[0, 0].legend(handles, labels, fontsize=8, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.08), columnspacing=1)
figures.show(figure)

# %% mystnb={"figure": {"caption": "Full batch normalization at the largest depth. Above: median angle between the sample of largest norm and the mean of the others, in degrees, on the same color scale as the map without rescaling. Below: median of the largest norm over the median norm of the others.", "name": "fig-06-rescaled-map"}, "image": {"alt": "Two heat maps one below the other, batch sizes as rows and widths as columns: angles in degrees above, norm ratios below."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, height=3.0)
for panel, source, name, label, limits, style in (
    (axes[0, 0], cells_with_rescaling, "angle_deg", "angle, degrees", (55, 90), ".0f"),
    (axes[1, 0], details_with_rescaling, "heavy", "largest norm / median", (1, 3), ".2f"),
):
    table = [[select(source, n=n, width=width, depth=last)[0][name] for width in widths] for n in sizes]
    figures.heat_map(
        panel,
        np.array(table, dtype=float),
        rows=sizes,
        columns=widths,
        row_label="batch size n",
        column_label="width",
        value_label=label,
        limits=limits,
        format=style,
    )
axes[0, 0].set_title(f"rescaling on, depth {last}")
figures.show(figure)

# %% tags=["hide-input"]
reference = {n: symmetric_state(n) for n in sizes if n >= 3}
figures.table(
    [
        (judgment["depth"], judgment["verdict"], judgment["holding"], judgment["undecided"], judgment["failing"])
        for judgment in judgments_with_rescaling
    ],
    header=("depth", "verdict", "cells that hold", "undecided", "fail"),
    caption="The same rules with rescaling on.",
)
figures.table(
    [
        (
            n,
            math.degrees(reference[n].angle),
            *(select(cells_with_rescaling, n=n, width=w, depth=last)[0]["angle_deg"] for w in widths),
        )
        for n in reference
    ],
    header=("n", "symmetric state", *(f"width {width}" for width in widths)),
    caption=f"Angle to the mean of the others, degrees: all samples equivalent at infinite width, and measured at depth {last} with rescaling on.",
)
run.judge("full-batch-norm-escaped-point", "full-batch-norm-norms-within-a-fifth")

# %% tags=["hide-cell"]
figures.table(
    [tuple(cell.values()) for cell in cells_with_rescaling],
    header=header,
    caption="All cells with rescaling; angles in degrees, medians.",
)

# %% [markdown]
# The first column of the second table is the state in which all samples are equivalent: equal norms, all cosines
# $J(-1/(n-1))$, as for batch normalization in chapter 3. The angle to the mean of the others is far from 90° there for a simple reason:
# vectors with non-negative entries and positive cosines between them have a mean that points along all of them.
#
# The norms are a different matter. The verdict on the statement that they all stay within 20 percent of each other is
# {glue:text}`verdict-full-batch-norm-norms-within-a-fifth`. Some spread is plain fluctuation at finite width, and falls from left to right in
# {numref}`fig-06-rescaled-map`. In large batches there is another reason.
#
# ## Rescaling and large batches: heavy, but never orthogonal
#
# Let the batch be infinite as well as the width. One sample then moves neither the mean of a neuron nor its standard deviation, and
# its fate is a map of a single number.
#
# ```{prf:theorem} One sample in an infinite batch
# :label: thm-06-infinite-batch
# Let width and batch be infinite, and let all samples but one be in the symmetric state of a network with recentering and ReLU, with
# or without rescaling. Let $s$ be the norm of the remaining sample over that of the others, after at least one layer. A layer maps
# it to
#
# $$
# s'^2 \;=\; s^2 + \frac{(s-1)^2}{\pi - 1},
# $$
#
# and the angle between this sample and the mean of the others is $\arccos(1/\sqrt\pi) = 55.7°$ for every $s$.
# ```
#
# ```{prf:proof}
# Normalize the neurons so that the others have mean square $\tfrac12$. Their pairwise cosine is $J(0) = 1/\pi$, so the square of their mean is
# $\tfrac1{2\pi}$, and the variance of a neuron over the batch is proportional to $v = \tfrac12(1-\tfrac1\pi)$. The remaining sample was produced by
# a ReLU from a Gaussian of standard deviation $s$, the others from Gaussians of standard deviation 1. Their correlations with it are all
# equal, since the others are equivalent, and add up to a bounded number, since centered samples add up to zero: they vanish in an
# infinite batch. Hence its mean square is $\tfrac12 s^2$, and its inner product
# with the mean is $\tfrac{s}{\sqrt{2\pi}}\cdot\tfrac1{\sqrt{2\pi}} = \tfrac{s}{2\pi}$. The cosine of the angle is therefore
# $\tfrac{s}{2\pi}\big/\sqrt{\tfrac{s^2}{2}\cdot\tfrac{1}{2\pi}} = 1/\sqrt{\pi}$. Centered, the sample has the mean square
# $\tfrac12 s^2 - \tfrac{s}{\pi} + \tfrac1{2\pi}$. The next layer's Gaussian for this sample has this variance, in units of $v$: rescaling divides by
# $\sqrt v$, and without it everything shrinks by the same factor. So
# $s'^2 = \bigl(s^2 - \tfrac{2s}{\pi} + \tfrac1\pi\bigr)\big/\bigl(1-\tfrac1\pi\bigr)$, and subtracting $s^2$ leaves $(s-1)^2/(\pi-1)$.
# ```
#
# The norm never decreases. A sample that is lighter than the others comes up to them; one that is heavier, by however little, runs away:
# with $s = 1 + \epsilon$, $\epsilon' = \epsilon + \epsilon^2/(2(\pi-1)) + \dots$, and for large $s$ by a factor $(1-1/\pi)^{-1/2} = 1.21$ a layer.
# But **it never turns**: in a batch that large, the escape is one in norm only, with and without rescaling.
#
# What happens next depends on the batch being finite. Without rescaling, the heavy sample at norm $s \sim n$ takes over the mean. All others then
# see minus that sample, they have disjoint supports, and the angle becomes 90°. With rescaling, the heavy sample first takes over the
# standard deviation, at $s \sim \sqrt n$: the neurons in which it is active are divided by its own size, and the growth stops before the mean is
# taken over. This is an argument about orders of magnitude, not a proof. It explains how rescaling can prevent the escaped point, and
# it says that full batch normalization should have *heavy samples* in large batches; in small ones the symmetric state pulls back
# and a heavy sample should return. The criterion takes the median over networks with its interval: the whole interval below 1.25 is a
# return, all of it above 1.5 is none. {numref}`fig-06-push` tries it: a batch of orthogonal samples of which one is three times as long as the
# others.

# %% mystnb={"figure": {"caption": "Full batch normalization at the largest width, started from orthogonal samples of which one is three times as long as the others: norm of that sample over the median norm of the others. Lines are medians over networks, bands the 10th to the 90th percentile of the networks. A line that comes down to 1 has forgotten the push.", "name": "fig-06-push"}, "image": {"alt": "Norm of the pushed sample over the median of the others against depth, one line with a band for each of a few batch sizes."}} tags=["hide-input"]
push_sizes = sorted({n for n in sizes if n >= 8}) or [n for n in sizes if n >= 3]
push_sizes = sorted({*push_sizes[::2], *push_sizes[-1:]})
factor, push_draws = 3.0, max(2, parameters.n_seeds // 4)
pushes = {
    n: run.resume(
        f"push-{n}-{widths[-1]}",
        lambda n=n: pushed(
            n,
            widths[-1],
            last,
            full,
            factor=factor,
            draws=push_draws,
            generator=run.generator("push", n, widths[-1]),
        ),
    )
    for n in progress(push_sizes, "pushes")
}
run.record(
    "pushed",
    [
        {"n": n, "width": widths[-1], "depth": last, "draws": push_draws, "start": factor}
        | {key: value for key, value in found.items() if key != "curves"}
        for n, found in pushes.items()
    ],
)
figure, axes = figures.new_figure()
if pushes:
    curve = {n: np.array(found["curves"], dtype=float) for n, found in pushes.items()}
    figures.curves(
        axes[0, 0],
        layers,
        [(f"n = {n}", curve[n][1]) for n in curve],
        bands=[(curve[n][0], curve[n][2]) for n in curve],
    )
    axes[0, 0].legend(ncols=len(curve), loc="lower center", bbox_to_anchor=(0.5, 1.08), columnspacing=1)
axes[0, 0].set(xlabel="depth", ylabel="norm / median of the others", title=f"rescaling on, width {widths[-1]}")
figures.show(figure)

# %% tags=["hide-input"]
ends = ("end", "end_low", "end_high", "angle_deg", "angle_low", "angle_high")
figures.table(
    [(n, *(found[key] for key in ends)) for n, found in pushes.items()],
    header=("n", "norm / median", "95 % from", "to", "angle", "95 % from", "to"),
    caption=(
        f"The pushed sample at depth {last}: its norm over the median norm of the others, and its angle to the mean of the others in "
        f"degrees; medians over {push_draws} networks with their intervals."
    ),
)
angles = [found["angle_deg"] for found in pushes.values() if found["angle_deg"] is not None]
run.record("pushed_angle_deg", max(angles, default=None))
run.glue("pushed-angle", "pushed_angle_deg", optional=True)
run.judge("full-batch-norm-heavy-sample")

# %% [markdown]
# ## Which sample
#
# The review remarks that a symmetric batch has no odd point, so that in real networks the outlier must be a product of the weights, and that
# its identity may change from one initialization to the next. The first half is exact.
#
# ```{prf:theorem} Symmetric batches leave the choice to the weights
# :label: thm-06-symmetric
# Let all samples have the same norm and all pairs the same cosine, below one, let the layers be recentering and ReLU, and let the weights be
# Gaussian. Then at every depth and width, the index of the sample of largest norm, ties broken at random, is uniformly distributed over
# the batch, and two independent networks agree on it with probability $1/n$.
# ```
#
# ```{prf:proof}
# The law of $XW$ depends on $X$ only through $XX^\top$, since its columns are independent Gaussian vectors with covariance proportional
# to it. For a permutation matrix $P$, $PX(PX)^\top = P\,XX^\top P^\top = XX^\top$, so $PXW$ and $XW$ have the same law. Recentering and
# ReLU commute with $P$; given the first layer, the same argument applied to $PX^{(1)}$, whose law is that of $X^{(1)}$, carries the
# invariance to every layer. With ties broken at random (ties can occur, since two samples may be silent in all neurons; at width $d$ this is
# exponentially rare) the choice of the sample is invariant as well, so it is equally likely to be any, and two independent uniform
# choices agree with probability $1/n$. No layer is zero: the cosine below one makes the rows of the input differ; rows that are not all equal
# give, with probability one, a centered neuron with both positive and negative entries, and after the ReLU the rows are again not all equal.
# ```
#
# The second half is a question of how much the input decides. Hold a batch fixed, redraw all weights many times, and estimate the
# probability that two networks single out the same sample: it is $1/n$ if the weights decide alone, and 1 if the input does. Three kinds of batch:
# symmetric; Gaussian of the network's width, as everywhere on this page; and Gaussian points on a line, the input of the paper's
# simplified model, where chapter 4 has the extremes escape. Only draws that do have an outlier count: the angle rule holds, and the largest
# norm is at least twice the second, so no tie is ever counted and none has to be broken.

# %% mystnb={"figure": {"caption": "Probability that two networks with independent weights single out the same sample of the same batch, with bars of two standard errors over batches; logarithmic axis. The black bars are chance, $1/n$. Symmetric batches must sit on them.", "name": "fig-06-identity"}, "image": {"alt": "Points with error bars on a logarithmic probability axis for each batch size and width, one marker for each of three kinds of batches, and short black bars at chance level."}} tags=["hide-input"]
identity_sizes = [n for n in sizes if 12 <= n <= 32][1::2] or [n for n in sizes if n >= 3][-1:]
kinds = {"gaussian": "Gaussian batch", "symmetric": "symmetric batch", "line": "points on a line"}
todo = [(n, width, kind) for n in identity_sizes for width in widths[:2] for kind in kinds]
found = [
    run.resume(
        f"identity-{kind}-{n}-{width}",
        lambda n=n, width=width, kind=kind: identity(
            n,
            width,
            last,
            kind,
            batches=max(2, parameters.n_seeds // 5),
            redraws=max(2, parameters.n_seeds // 2),
            thresholds=thresholds,
            generator=run.generator("identity", kind, n, width),
        ),
    )
    for n, width, kind in progress(todo, "identities")
]
run.record("identity", found)

figure, axes = figures.new_figure()
places = [(n, width) for n in identity_sizes for width in widths[:2]]
for index, (kind, label) in enumerate(kinds.items()):
    rows = [select(found, kind=kind, n=n, width=width)[0] for n, width in places]
    middle = np.array([row["agreement"] for row in rows], dtype=float)
    error = 2 * np.array([row["standard_error"] for row in rows], dtype=float)
    style = figures.line_style(index) | {"linestyle": "none"}
    axes[0, 0].errorbar(np.arange(len(places)) + 0.15 * (index - 1), middle, error, label=label, capsize=3, **style)
for index, (n, _) in enumerate(places):
    label = "chance, 1/n" if index == 0 else None
    axes[0, 0].plot([index - 0.35, index + 0.35], [1 / n, 1 / n], color="black", linewidth=1.2, label=label)
axes[0, 0].set(yscale="log", ylabel="probability of the same outlier", ylim=(0.015, 1.6))
axes[0, 0].set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0.02", "0.05", "0.1", "0.2", "0.5", "1"])
axes[0, 0].set_xticks(range(len(places)), [f"n = {n}\nwidth {width}" for n, width in places])
axes[0, 0].minorticks_off()
axes[0, 0].legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, 1.25))
figures.show(figure)

# %% tags=["hide-input"]
shown_shares = ("share_with_outlier", "agreement", "standard_error", "chance", "share_farthest", "share_extreme")
figures.table(
    [(row["n"], row["width"], kinds[row["kind"]], *(row[key] for key in shown_shares)) for row in found],
    header=(
        "n",
        "width",
        "batch",
        "draws with outlier",
        "same outlier",
        "standard error",
        "chance",
        "farthest input",
        "end of the line",
    ),
    caption="Shares. “Farthest input”: the outlier is the sample that lay farthest from the batch mean at the input.",
)
run.judge("outlier-in-symmetric-batches", "outlier-identity-unstable", "outlier-of-a-line-is-an-extreme")

# %% [markdown]
# ## What the test has settled
#
# * Literally, at depth 30: {glue:text}`verdict-review-test-depth-30`. A test at a fixed depth measures speed, not the limit.
# * By depth 200: {glue:text}`verdict-review-test-depth-200`; at the last depth of the map all rules hold {glue:text}`late-from`, and
#   {numref}`fig-06-onset` shows how many layers each width needs.
# * That the smallest batches show no outlier at all is {glue:text}`verdict-test-batches-up-to-six`.
# * For batch normalization with all three components, an orthogonal escaped point is
#   {glue:text}`verdict-full-batch-norm-escaped-point`. Recentering **without** rescaling, which the paper's abstract speaks of, is known in
#   the field as mean-only batch normalization {cite}`salimans2016`.
# * Full batch normalization in large batches is another matter again: that a heavy sample survives there and is forgotten in small ones is
#   {glue:text}`verdict-full-batch-norm-heavy-sample`. The largest median angle of that sample to the mean of the
#   others, over the batch sizes tried, is {glue:text}`pushed-angle:.0f`°.
# * Whether the outlier is a property of a data point: that two initializations agree on it less than twice as often as by chance is
#   {glue:text}`verdict-outlier-identity-unstable` for Gaussian batches, and that chance alone decides is
#   {glue:text}`verdict-outlier-in-symmetric-batches` for symmetric ones.
#
# ## Exercises
#
# ```{exercise} A test that cannot fail
# :label: ex-06-two
# *Easy, 10 minutes.* Run the test with batches of $n = 2$. Show that the angle is exactly 90° after every layer, for every draw, width and
# depth, so that the rule on the angle holds. Why is this no evidence for the claim?
# ```
#
# ```{solution} ex-06-two
# :label: sol-06-two
# :class: dropdown
# Recentering two samples makes them $\pm(x_1-x_2)/2$. In every neuron one of the two is positive and the other negative, so after ReLU the two
# rows have disjoint supports and are orthogonal, whatever $W$ is (as long as neither is zero). It is no evidence because nothing was at risk: there is no cluster, and which sample
# is "the outlier" is a coin toss between two norms of the same law. A criterion must be able to come out otherwise; here only the rules on the
# norms could.
# ```
#
# ```{exercise} Does the threshold decide?
# :label: ex-06-threshold
# *Medium, 20 minutes.* The rule asks for 85°. Use `bnlib.outlier_states.outlier_state` to find, for thresholds of 80°, 85°, 88° and 89°, the
# smallest batch size whose state at infinite width passes. Which of the verdicts on this page could change with the threshold?
# ```
#
# ```{solution} ex-06-threshold
# :label: sol-06-threshold
# :class: dropdown
# `[next(n for n in range(7, 65) if (s := outlier_state(n)) and math.degrees(s.angle) >= a) for a in (80, 85, 88, 89)]`
# gives 7, 8, 10 and 12. The angle gap closes like $n^{-3}$, so a stricter threshold moves $n_0$ by little. The literal verdict
# would only become harder to pass with a stricter rule; with a laxer one of, say, 60°, even the symmetric state of small batches
# ($65°$ at $n = 8$) would pass, and the rule on the angle would no longer distinguish an outlier from none. The rule on the norms still
# would: in the symmetric state the largest norm is no larger than the second.
# ```
#
# ```{exercise} How many draws?
# :label: ex-06-draws
# *Medium, 20 minutes.* Suppose that in some cell 40 percent of the draws are above 85°. With $m$ draws, how likely is it that the cell counts as
# *undecided*? Take $m = 8$, $48$ and $200$.
# ```
#
# ```{solution} ex-06-draws
# :label: sol-06-draws
# :class: dropdown
# The interval is $[a_{(k)}, a_{(m+1-k)}]$ with the $k$ of {eq}`eq-06-interval`. The cell fails if $a_{(m+1-k)} < 85°$, that is, if at most
# $k-1$ draws are above; it holds if $a_{(k)} \ge 85°$, that is, if at least $m+1-k$ are. With $N \sim \mathrm{Binomial}(m, 0.4)$ the cell is undecided with
# probability $P(k \le N \le m-k)$. For $m = 8$: $k = 1$, about 0.98. For $m = 48$: $k = 17$, about 0.79. For
# $m = 200$: $k = 86$, about 0.21. Eight draws show that a test runs; they decide nothing that is not overwhelming.
# ```
#
# ```{exercise} Escape without rescaling, in an infinite batch
# :label: ex-06-escape
# *Harder, 30 minutes.* Start from $\epsilon_0 = 0.05$ in {prf:ref}`thm-06-infinite-batch` and iterate until $s = 64$. How many layers does it take, and
# how many of them are spent below $s = 2$? Explain the first part by turning $\epsilon' = \epsilon + \epsilon^2/(2(\pi-1))$ into a differential equation.
# How does the number of layers depend on the width, if $\epsilon_0 \sim 1/\sqrt d$ and nothing else fluctuates?
# ```
#
# ```{solution} ex-06-escape
# :label: sol-06-escape
# :class: dropdown
# The equation $\dot\epsilon = \epsilon^2/(2(\pi-1))$ has the solution $1/\epsilon(t) = 1/\epsilon_0 - t/(2(\pi-1))$, which blows up at
# $t = 2(\pi-1)/\epsilon_0 = 86$ layers for $\epsilon_0 = 0.05$. Iterating the map
# (`s = math.sqrt(s * s + (s - 1) ** 2 / (math.pi - 1))`) takes 98 layers to $s = 2$ and 124 to $s = 64$: nearly all the waiting is for the
# first doubling. With $\epsilon_0 \sim 1/\sqrt d$ the waiting time grows like $\sqrt d$. Fluctuations in every layer only help, which lowers the exponent to the
# $1/3$ of {eq}`eq-06-onset`.
# ```

# %% tags=["hide-input"]
run.finish()
