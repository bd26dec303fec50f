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
# {glue:text}`rescaled-angle-low:.0f`° to {glue:text}`rescaled-angle-high:.0f`°. On handwritten digits the same test gives
# {glue:text}`verdict-review-test-digits-depth-30` at depth 30 and {glue:text}`verdict-review-test-digits-depth-200` by depth 200. That the outlier changes from one initialization to the
# next, on one and the same batch, is {glue:text}`verdict-outlier-identity-unstable` for Gaussian batches and {glue:text}`verdict-outlier-identity-unstable-digits` for digits.
# :::

# %% tags=["parameters", "hide-input"]
device = "auto"
seed = 0
results_dir = "build/runs"
batch_sizes = [2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128]
widths = [64, 256, 1024, 4096]
depths = [10, 30, 60, 100, 200]
n_seeds = 48
least_seeds = 24
cell_budget = 52

# %% tags=["hide-input"]
from bnlib.parameters import check, integer, integers

parameters = check(
    globals(),
    batch_sizes=integers(minimum=2),
    widths=integers(minimum=1),
    depths=integers(minimum=1),
    n_seeds=integer(minimum=2),
    least_seeds=integer(minimum=2),
    cell_budget=integer(minimum=1),
)

# %% tags=["hide-input"]
import math
from dataclasses import replace

import numpy as np

from bnlib import falsification_figures as pictures
from bnlib import figures, records, seeds
from bnlib.estimates import kept_summary, onset_per_doubling, onset_summary
from bnlib.falsification import PILOT_BATCH_SIZES, SENSITIVITY, plan_cell, run_cell
from bnlib.falsification_figures import select, with_interval
from bnlib.falsification_rules import Thresholds, growth_table, verdict_at, verdicts_by_width
from bnlib.layers import Stages
from bnlib.onset_laws import LAWS, compare_laws
from bnlib.outlier_identity import dose_response, identity
from bnlib.outlier_states import outlier_state, symmetric_state
from bnlib.progress import progress
from bnlib.pushed_networks import pushed
from bnlib.two_samples import norm_ratio_median, norm_ratio_tail

run = records.start("06_falsification_test", parameters)
sizes, widths, depths = sorted(parameters.batch_sizes), sorted(parameters.widths), sorted(parameters.depths)
last = depths[-1]
early = 30 if 30 in depths else depths[0]
judged = [n for n in sizes if n >= 4] or sizes
large = [n for n in sizes if n >= 12] or sizes
powers = [n for n in judged if n & (n - 1) == 0] or judged
middle_width = widths[(len(widths) - 1) // 2]
thresholds = Thresholds(**records.load_claims()["review-test-depth-30"]["thresholds"])
run.record("thresholds", vars(thresholds))

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
# * *Network.* All layers have the same width $d$; the batch is Gaussian, of dimension $d$, or consists of different
#   handwritten digits (scikit-learn's, $8\times 8$ gray levels, neither centered nor scaled); batch and weights are drawn afresh for every
#   draw. Depth counts linear layers, and the representation is read after the last ReLU. The paper's own set-up is not
#   at hand, and the review names neither width nor batch size, so both are varied.
# * *Weight variance.* It does not matter here. Recentering and ReLU are positively homogeneous: with $\lambda > 0$,
#   $\mathrm{ReLU}(G\,\lambda H) = \lambda\,\mathrm{ReLU}(GH)$. A different $\sigma^2$ multiplies every layer by a constant, which no
#   angle and no ratio of norms can see.
# * *"Approaches 90°."* The median angle over the draws is at least 85°. The threshold is not innocent at small $n$: further
#   down the state that these networks settle in is computed, and its angle at $n = 7$ is {glue:text}`angle-at-seven:.2f`°.
# * *"A single outlier."* In the median the largest norm is at least twice the second-largest.
# * *"Over many random seeds."* At least half of the draws must pass both rules **at once**; the share has its exact interval (Clopper and
#   Pearson). Two medians can be large without any draw in which both are. How a stricter share would change the verdict is tabulated below.
# * *"At least linear."* The median norm ratio is fitted by a power $n^p$; the 95 percent interval of $p$ must reach up to 1 and
#   not down below 0.9.
#
# How well a median is known matters, because a few dozen draws do not fix it to a degree. Order the $m$ draws,
# $a_{(1)} \le \dots \le a_{(m)}$. The true median lies below $a_{(k)}$ only if fewer than $k$ draws fall below it, and each does so with
# probability one half, so
#
# $$
# \begin{aligned}
# P\bigl(a_{(k)} \le \text{median} &\le a_{(m+1-k)}\bigr) \\
# &\ge 1 - 2\,P\bigl(\mathrm{Binomial}(m, \tfrac12) < k\bigr),
# \end{aligned}
# $$ (eq-06-interval)
#
# whatever the distribution. With the largest $k$ that leaves 95 percent this is the interval used on this page. A rule *holds* for a
# cell if the whole interval is on the good side of the threshold, *fails* if all of it is on the other, and is *undecided*
# in between. A cell holds if all three of its rules (angle, norm, share of the draws) hold, and fails if one of them fails.
#
# :::{admonition} The verdict at one depth, over all batch sizes and widths
# The claim speaks about growing $n$, so it gets the benefit of the doubt for small batches. Let $n_0$ be the smallest batch size
# such that, at **every** width, **every** cell with $n \ge n_0$ holds and the growth from $n_0$ on is at least linear (three batch
# sizes is the least that growth can be judged by). Batches of 2 and 3 are not judged: a later section works them out. This $n_0$ belongs to the widths of the map:
# at fixed $n$ wider networks need more layers, so more widths at the same depth can only raise it. Verdicts are about widths up to the largest one here, and a table has each width alone.
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
# the seeds 0, 1000 and 2412 had been seen, and earlier notes printed outcomes. After the first complete runs (batches of 4 to 64, widths of 64, 256
# and 1024, Gaussian batches) the number of draws was raised from 48 to 64, and referees had several criteria tightened, this rule among them. For the
# present size of the map, for which 48 draws must do again, the rule on the share of the draws was added, and the criteria for losses and for the onset's growth were
# replaced, before any result of that size had been seen. So were, after another referee: the comparison of power and cube root, all parts of the check of two samples but the median, the
# intervals for the line, for symmetric batches and for the agreement of two networks (which had been two standard errors), and a fault by which widths that do not reach a depth took part in judging growth there. The run of record uses another seed, and its verdicts stand as they come.
# Batch sizes that no pilot had looked at, at any width, when their criteria were written are marked as **predictions**: 24, which full
# runs have shown since, and 128. Widths above 1024 and all cells on digits are new as well.
#
# ### How many draws
#
# A layer of one draw costs about $n\,d\,(100+n)$ units: $n d$ Gaussian numbers, since a layer needs only a root of the Gram matrix, and two products
# with $n\times n$ matrices. Every cell without rescaling on Gaussian batches goes to the last depth, with as many draws as a budget of
# {glue:text}`budget` billion units allows, at most {glue:text}`draws` and at least {glue:text}`least-draws`. The three companions (rescaling on,
# digits, both) use batch sizes that are powers of two, half as many draws, the second of them 2.8 times the budget and the last 0.3 times, and **stop earlier** where even the fewest draws exceed the budget, never
# before depth {glue:text}`early-depth`. So the literal test is complete for all four; at larger depths their most expensive cells are
# blank, and a verdict goes by those widths at which every batch size reaches the depth. Every table and interval goes by the draws that a cell really has.

# %% tags=["hide-input"]
figures.table(
    [
        ("angle to the mean of the others, degrees", thresholds.angle_deg, "“approaches 90 degrees”"),
        ("largest over second-largest norm", thresholds.top_over_second, "“single outlier”"),
        ("exponent of the norm ratio in n", thresholds.exponent, "“at least linearly in n”"),
        ("tolerance of that exponent's lower end", thresholds.exponent_margin, "ours"),
        ("layers in a row that make a passage, or a loss", thresholds.hold, "ours"),
        ("share of draws that pass angle and norm rule at once", thresholds.share, "“over many random seeds”"),
    ],
    header=("quantity", "threshold", "the review's words"),
    caption="The rules, as numbers.",
)

# %% tags=["hide-input"]
recentered, full = Stages.parse("RC+NL"), Stages.parse("RC+RS+NL")
least = min(parameters.least_seeds, parameters.n_seeds)
half = (least, max(least, parameters.n_seeds // 2))
# name: stages, data, batch sizes, fewest and most draws, budget in billions, depth that is reached at any cost
conditions = {
    "": (recentered, "gaussian", sizes, (least, parameters.n_seeds), parameters.cell_budget, last),
    "_with_rescaling": (full, "gaussian", powers, half, parameters.cell_budget, early),
    "_on_digits": (recentered, "digits", powers, half, 2.8 * parameters.cell_budget, early),
    "_on_digits_with_rescaling": (full, "digits", powers, half, 0.3 * parameters.cell_budget, early),
}
parts = {name: {} for name in conditions}
todo = [(name, n, width) for name, condition in conditions.items() for n in condition[2] for width in widths]
for name, n, width in progress(todo, "cells"):
    stages, data, _, draws, budget, reach = conditions[name]
    plan = plan_cell(n, width, depths, draws=draws, budget=1e9 * budget, reach=reach)
    parts[name][n, width] = run.resume(
        f"map{name}-{n}-{width}",
        lambda stages=stages, data=data, n=n, width=width, plan=plan: run_cell(
            n,
            width,
            plan.depths,
            plan.draws,
            stages,
            thresholds=thresholds,
            generator=run.generator("map", stages.name, data, n, width),
            data=data,
        ),
    )

bootstrap = np.random.default_rng(seeds.derive_seed(parameters.seed, "bootstrap"))
tables, growths, judgments = {}, {}, {}
for name, found in parts.items():
    tables[name] = {key: [row for part in found.values() for row in part[key]] for key in ("cells", "details")}
    growths[name] = []
    for depth in depths:
        reached = {key: part for key, part in found.items() if key[0] >= 4 and str(depth) in part["norm_ratios"]}
        growths[name] += growth_table(reached, depth, generator=bootstrap)
    judgments[name] = []
    for depth in depths:
        rows = [row for row in tables[name]["details"] if row["n"] in judged and row["depth"] == depth]
        wanted = [n for n in conditions[name][2] if n in judged]
        complete = [width for width in widths if len(select(rows, width=width)) == len(wanted)]
        rows = [row for row in rows if row["width"] in complete]
        if rows:
            judgment = verdict_at(rows, growths[name], depth, thresholds)
            alone = verdicts_by_width(rows, growths[name], depth, thresholds)
            judgments[name].append({"widths": complete, **judgment, "by_width": alone})
    run.record(f"cells{name}", tables[name]["cells"])
    run.record(f"details{name}", tables[name]["details"])
    run.record(f"growth{name}", growths[name])
    run.record(f"judgments{name}", judgments[name])
    run.record(
        f"verdict{name or '_'}_at_depth".replace("__", "_"), {row["depth"]: row["verdict"] for row in judgments[name]}
    )
cells, details, growth = tables[""]["cells"], tables[""]["details"], growths[""]
rescaled, on_digits, on_digits_rescaled = (tables[name] for name in list(conditions)[1:])

summary = {"early-depth": early, "late-depth": last, "draws": parameters.n_seeds, "least-draws": least}
summary |= {
    "budget": parameters.cell_budget,
    "total-draws": sum(len(part["onsets"]) for f in parts.values() for part in f.values()),
}
for name, rows, depth, chosen in (
    ("early", cells, early, large),
    ("late", cells, last, large),
    ("rescaled", rescaled["cells"], last, powers),
):
    angles = [c["angle_deg"] for c in rows if c["depth"] == depth and c["n"] in chosen and c["angle_deg"] is not None]
    summary |= {f"{name}-angle-low": min(angles, default=None), f"{name}-angle-high": max(angles, default=None)}
held_from = select(judgments[""], depth=last)[0]["from_n"]
summary["late-from"] = "for no batch size"
if held_from is not None:
    summary["late-from"] = f"from n = {held_from} on, at widths up to {widths[-1]}"
run.record("summary", summary)
for name, value in summary.items():
    if value is not None:
        run.glue(name, f"summary['{name}']")

# %% [markdown]
# ## The literal test, at depth 30
#
# {numref}`fig-06-literal` shows the test as the review states it, cell by cell: angle, norm ratio, and share of the draws that pass both
# rules. Two lines go with the ratio. The upper one is $n-1$, the ratio in Definition 12 of the paper. The lower one, $(n-2)/3$, is the
# reciprocal of the bound that Theorem 11 gives for the simplified model; both are linear in $n$.

# %% mystnb={"figure": {"caption": "The literal test. Top: median angle between the sample of largest norm and the mean of the others, with the range from the 10th to the 90th percentile of the draws; the dashed line is the threshold. Middle: median ratio of their norms with its 95 percent interval, on logarithmic axes, where a power of $n$ is a straight line; compare the slopes with the two linear laws. Bottom: share of the draws in which the angle passes and the largest norm is at least twice the second, with its exact 95 percent interval; the dashed line is one half.", "name": "fig-06-literal"}, "image": {"alt": "Three panels over batch size on a logarithmic axis, one curve for each width: angles in degrees with bars and a dashed line at 85 degrees, norm ratios with two straight reference lines, and shares of the draws with a dashed line at one half."}} tags=["hide-input"]
figures.show(pictures.literal_figure(cells, details, early, thresholds))

# %% tags=["hide-input"]
run.judge("review-test-depth-30")

# %% [markdown]
# Taken alone, this settles the literal question: at depth 30 the verdict is {glue:text}`verdict-review-test-depth-30`. The rule leaves
# $n_0$ free and refutes only by the largest batches or by their growth, so small batches could not be to blame. But an asymptotic statement ("through the layers the
# representation converges") is not judged by stopping early. The fair question is where, in batch size, width and depth, it holds.
#
# ## The map
#
# {numref}`fig-06-map` has the median angle for every batch size, width and depth. The first two rows of each panel, batches of 2 and 3, are special.

# %% mystnb={"figure": {"caption": "Median angle between the sample of largest norm and the mean of the others, in degrees, with recentering and without rescaling, Gaussian batches. One panel for each width; batch size from top to bottom, depth from left to right. Follow a row to the right to see whether and when the batch reaches 85 degrees, and compare the same place in the panels for the effect of the width.", "name": "fig-06-map"}, "image": {"alt": "Heat maps, one below the other for each width, with batch sizes as rows and depths as columns; every cell holds its median angle in degrees."}} tags=["hide-input"]
figures.show(pictures.map_figure(cells))

# %% tags=["hide-input"]
figures.table(
    [
        tuple(judgment[key] for key in ("depth", "verdict", "from_n", "holding", "undecided", "failing"))
        for judgment in judgments[""]
    ],
    header=("depth", "verdict", "holds from n", "cells that hold", "undecided", "fail"),
    caption="The rules applied at each depth over all batches of 4 and more and all widths (recentering, no rescaling).",
)
figures.table(
    [
        (
            judgment["depth"],
            *(
                alone["verdict"] if alone["from_n"] is None else f"n ≥ {alone['from_n']}"
                for alone in judgment["by_width"].values()
            ),
        )
        for judgment in judgments[""]
    ],
    header=("depth", *(f"width {width}" for width in widths)),
    caption="The same rules for each width alone: the batch sizes from which they hold, or else the verdict.",
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
# ### Would other thresholds decide otherwise?
#
# 85° and one half are ours. The next table repeats the verdict with laxer and stricter ones, on the same draws: for each angle the draws were
# counted again, and the interval of the median was held against it.

# %% tags=["hide-input"]
variants = [replace(thresholds, angle_deg=angle) for angle in SENSITIVITY] + [replace(thresholds, share=0.8)]
sensitivity = [
    {"angle_deg": rule.angle_deg, "share": rule.share, **verdict_at(of_judged, growth, depth, rule)}
    for of_judged in [[row for row in details if row["n"] in judged]]
    for rule in variants
    for depth in depths
]
run.record("sensitivity", sensitivity)
figures.table(
    [
        (
            depth,
            *(
                row["verdict"] if row["from_n"] is None else f"n ≥ {row['from_n']}"
                for rule in variants
                for row in select(sensitivity, angle_deg=rule.angle_deg, share=rule.share, depth=depth)
            ),
        )
        for depth in depths
    ],
    header=("depth", *(f"{rule.angle_deg:g}°, share {rule.share:g}" for rule in variants)),
    caption="The verdict for other thresholds of the angle and of the share of the draws (the other rules as above), or the batch sizes from which the rules hold.",
)
decided = {row["verdict"] for row in sensitivity if row["depth"] == early}
run.record("early_verdicts", ", ".join(sorted(decided)))
run.glue("early-verdicts", "early_verdicts")

# %% [markdown]
# At depth {glue:text}`early-depth` the four rules give: {glue:text}`early-verdicts`. Laxer than 80° makes no sense, and the batches of 3 below show why.
#
# Every cell is in the next table.

# %% tags=["hide-cell"]
header = ("n", "width", "depth", "angle", "ratio", "top / 2nd", "> 85°", "both", "draws")
of_cells = "angles in degrees with the range from the 10th to the 90th percentile of the draws; medians of the norm ratio and of the largest over the second norm; shares of the draws above 85° and with both rules."


def cell_rows(source):
    return [
        (
            *(c[name] for name in ("n", "width", "depth")),
            with_interval(c, "angle_deg", "angle_deg_q10", "angle_deg_q90", ".1f"),
            *(c[name] for name in ("norm_ratio", "top_over_second")),
            *(f"{c[name]:.2f}" for name in ("share_above_85", "share_with_outlier")),
            c["n_seeds"],
        )
        for c in source
    ]


figures.table(
    cell_rows(cells),
    header=header,
    caption=f"All cells without rescaling, Gaussian batches: {of_cells}",
)

# %% [markdown]
# ## Two samples, and three
#
# The smallest batches can be worked out. For two samples the rule on the angle is vacuous.
#
# ```{prf:theorem} Two samples
# :label: thm-06-two
# Let $n=2$, let the two samples differ, and let every layer be a Gaussian linear map to width $d$, recentering and ReLU. Then after every layer, and with
# probability one,
#
# 1. the two samples are exactly orthogonal, unless one of them is zero, which happens with probability $2^{1-d}$ in each layer;
# 2. the ratio $R_t$ of the first norm to the second is independent of all earlier layers, and has the same law for every $t$: with
#    $K\sim\mathrm{Binomial}(d,\tfrac12)$ and, given $K$, $B\sim\mathrm{Beta}(K/2,(d-K)/2)$,
#
# $$
# R_t^2 \;\overset{\text{law}}{=}\; \frac{B}{1-B}\qquad (B=0 \text{ if } K=0,\; B=1 \text{ if } K=d).
# $$ (eq-06-two)
#
# With rescaling as well the samples are orthogonal, and $R_t^2 = K/(d-K)$.
# ```
#
# ```{prf:proof}
# Recentering maps the two rows of the preactivation to $h$ and $-h$ with $h=\tfrac12(x_1-x_2)W$. In every neuron at most one of $\mathrm{ReLU}(h_j)$ and
# $\mathrm{ReLU}(-h_j)$ is not zero, so the inner product of the rows is zero. Their difference is $\mathrm{ReLU}(h)-\mathrm{ReLU}(-h)=h$, so the next layer
# has $h'=\tfrac12 hW'$: given the past its entries are independent Gaussians of variance $\sigma^2|h|^2/(4d)$, and $|h|>0$ with probability one, since $x_1\ne x_2$.
# The ratio $R'=|\mathrm{ReLU}(h')|/|\mathrm{ReLU}(-h')|$ does not change when $h'$ is multiplied by a positive number, so its law given the past is that of
# $|\mathrm{ReLU}(g)|/|\mathrm{ReLU}(-g)|$ with $d$ independent standard Gaussians $g_j$, whatever the past: this is independence and the equal law. Signs and absolute
# values of $g_j$ are independent; given that $K$ are positive, the two squared norms are independent and chi-squared with $K$ and $d-K$ degrees of freedom, and the
# first one's share of the sum is $\mathrm{Beta}(K/2,(d-K)/2)$. One of the rows is zero if all signs are equal, which has probability $2\cdot 2^{-d}$. Rescaling divides
# $h_j$ by $|h_j|$: the rows become indicators of $K$ and of the other $d-K$ neurons, their difference has $d$ entries $\pm1$, and the argument repeats.
# ```
#
# So the angle is 90° at once and for ever, and yet nothing has escaped. There is no cluster to escape from. Which sample is the longer one is a new coin toss in every
# layer; the longer norm exceeds the shorter by a share of about $1.17/\sqrt d$ in the median (the squared norms differ by a sum of $d$ independent terms of variance $3$ around a
# sum of about $d$, so $R\approx 1+N\sqrt{3/d}$ with a standard Gaussian $N$ whose absolute value has median $0.674$), and an excess by the factor of
# {glue:text}`norm-rule:.0f` that the rule on the norms asks for has probability {glue:text}`two-tail:.2g` at width {glue:text}`narrowest`. The rule on the norms
# is what saves the test from the smallest batch.
#
# Three samples come close. Symmetric ones are at 120° once centered, so after ReLU all cosines are $J(-\tfrac12)=\tfrac{\sqrt3}{2\pi}-\tfrac16 = 0.109$, and the
# angle of one to the mean of the other two, $\arccos\bigl(c\sqrt{2/(1+c)}\bigr)$ for the common cosine $c$, is {glue:text}`angle-at-three:.2f`°: above a threshold of 80°, with
# equal norms. The table has this angle beside what networks do.

# %% tags=["hide-input"]
checked = [part["two_samples"] for (n, _), part in parts[""].items() if n == 2 and part["two_samples"]]
extremes = [row[key] for row in checked for key in ("least_angle_deg", "largest_angle_deg") if row[key] is not None]
pooled = None
if extremes:
    pooled = {"least_angle_deg": min(extremes), "largest_angle_deg": max(extremes), "by_width": checked}
    pooled["largest_gap_deg"] = max(abs(90 - angle) for angle in extremes)
run.record("two_samples", pooled)
run.record("two_samples_tail", norm_ratio_tail(thresholds.top_over_second, widths[0]))
run.record("angle_deg_at_three", math.degrees(symmetric_state(3).angle))
summary_of_small = {"two-tail": "two_samples_tail", "angle-at-three": "angle_deg_at_three"}
for name, value in summary_of_small.items():
    run.glue(name, value)
run.glue("norm-rule", "thresholds['top_over_second']")
run.record("narrowest_width", widths[0])
run.glue("narrowest", "narrowest_width")
figures.table(
    [
        (
            n,
            90.0 if n == 2 else math.degrees(symmetric_state(n).angle),
            width,
            *(c[key] for c in select(cells, n=n, width=width, depth=last) for key in ("angle_deg", "top_over_second")),
            norm_ratio_median(width) if n == 2 and width >= 3 else (1.0 if n > 2 else None),
            *(d[key] for d in select(details, n=n, width=width, depth=last) for key in ("share", "share_high")),
        )
        for n in [m for m in sizes if m <= 6]
        for width in widths
    ],
    header=("n", "angle, symmetric", "width", "angle", "top/second", "theory", "share with outlier", "95 % up to"),
    caption=(
        f"The smallest batches at depth {last}: angle to the mean of the others in the symmetric state at infinite width, degrees; median angle and "
        "median of the largest over the second-largest norm as measured; that ratio in theory (two samples: exact at this width; more: the "
        "symmetric state at infinite width); share of the draws that pass both rules."
    ),
)
if checked:
    figures.table(
        [
            (
                row["width"],
                row["ratios"],
                max(abs(90 - row[key]) for key in ("least_angle_deg", "largest_angle_deg")),
                *(row[key] for key in ("ks_distance", "ks_p", "layers_p")),
                *(f"{row[key]:.2f}" for key in ("lag_z", "lag_size_z")),
            )
            for row in checked
        ],
        header=("width", "ratios", "90° within", "distance", "p-value", "p, layers", "z, rank", "z, size"),
        caption=(
            "Two samples, all layers and draws. Largest deviation of an angle from 90 degrees; Kolmogorov-Smirnov distance of the ranks from the uniform law and its "
            "p-value; p-value for equal laws layer by layer; correlation of two successive layers in standard errors, of the ranks and of their distance from one half."
        ),
    )
run.judge("two-samples-exact")

# %% [markdown]
# Each part of the theorem is put to the test, on **every** layer of every draw. With $F$ the distribution function of $\log R_t$ by {eq}`eq-06-two`, the ranks $u_t = F(\log R_t)$ are independent and
# uniform on $[0,1]$. Equal laws: the test of Kolmogorov and Smirnov over all ranks of a width, and, since a few layers with another law could hide among many, a chi-squared test of the
# means of $\lvert 2u_t-1\rvert$, layer by layer. Independence: the products $12\,(u_t-\tfrac12)(u_{t+1}-\tfrac12)$ have mean 0 and variance 1 and are uncorrelated with each other, so their sum over the
# square root of their number is a standard score; the same for $\lvert 2u_t-1\rvert$, which would show that the *size* of the ratio is remembered. "Measured" has the least and the
# largest angle, the largest distance of a width, and its smallest p-value; the spread is the largest score. A correlation of neighboring layers only is measured: independence of all layers is what the proof says.
#
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
chosen = {n: parts[""][n, middle_width] for n in shown}
figures.show(pictures.depth_figure(chosen, states, middle_width))

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
# \begin{aligned}
# a - 2s + r, &\qquad b - 2t + r, \\
# c - 2t + r, &\qquad e - s - t + r ,
# \end{aligned}
# $$ (eq-06-four)
#
# and $V$ maps the four to four again. Iterating this from a tight cluster costs nothing, and either settles in a state with an outlier
# or loses it. This is a **calculation at infinite width**; the table holds it against the networks of the map, at the largest
# depth, which are **simulated at finite width**. Where a row is empty the outlier dissolves.

# %% tags=["hide-input"]
against, table = [], []
for n in states:
    state = states[n]
    name = f"{n}" if n in PILOT_BATCH_SIZES or state is None else f"{n}*"
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
run.judge("test-batches-up-to-six", "prediction-batch-of-24", "prediction-batch-of-128")

# %% [markdown]
# The smallest batch in which the iteration keeps an outlier is $n =$ {glue:text}`smallest-state`. That smaller ones lose it is a numerical
# observation about one starting point here, not a proof. Compare the norm ratio with $n - 1$: if networks are in this state, "at least
# linear" is what to expect. And the state sets the limit of the angle: the review's 90° is approached in $n$, not only in depth.
#
# ## When: the onset
#
# Call *onset* the first layer of the first ten consecutive layers above 85°. A draw without one by the last layer is *censored*: it is
# counted as later than all others, never dropped. {numref}`fig-06-arrivals` has the share of the draws whose onset has come, by the estimator of
# Kaplan and Meier: with $d_t$ onsets at layer $t$ among the $r_t$ draws that are still without one and still watched, the share without an onset after $t$ is
# $\hat S(t) = \prod_{s\le t} (1-d_s/r_s)$. Here all draws are watched equally long, so $1-\hat S$ is just the observed share, and medians with the intervals of
# {eq}`eq-06-interval` need no model. For losses, further down, it is not so.

# %% mystnb={"figure": {"caption": "Share of the draws whose onset has come, along the depth, recentering without rescaling, Gaussian batches: Kaplan-Meier estimates with pointwise 95 percent bands, one curve for each width. A curve that ends below one has censored draws.", "name": "fig-06-arrivals"}, "image": {"alt": "Two panels, one for each of two batch sizes, with rising step curves over depth, one with a band for each width."}} tags=["hide-input"]
arrival_sizes = [n for n in sizes if n in (16, 64)] or judged[-2:]
figures.show(pictures.arrivals_figure(parts[""], arrival_sizes, widths))

# %% [markdown]
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
# takes. A logarithm would mean that the escape starts from a perturbation that is there at the input and grows exponentially.
#
# In a small batch there is more to say. The symmetric state is *stable* there (see the chapter on infinite width): it pulls a deviation back by a factor
# of $1-O(1/n)$ a layer, so fluctuations of size $1/\sqrt d$ a layer settle at a size of about $\sqrt{n/d}$, and the batch escapes once they exceed the separatrix, a spread of norms of about
# $1.2/n$. While $d \ll n^3$ they do so at once, and nothing but {eq}`eq-06-onset` limits the speed. When $d \gg n^3$ the network has to wait for a rare large fluctuation, and by the general theory of
# exits from a stable state under weak noise (Freidlin and Wentzell) the waiting time grows like $e^{d V_n}$, with a constant $V_n>0$: faster than any power. So **no** law of this page can hold at fixed $n$ for all
# widths; what can be asked is which of them describes the range of widths that is measured, and where a curve bends upward.
#
# So there are three laws to compare, for the median onset $T_n(d)$ of batches of $n\ge12$:
#
# $$
# \begin{aligned}
# T_n &= a_n + b_n\log_2 d, \\
# T_n &= a_n\, d^{\,p_n}, \\
# T_n &= a_n + b_n\, d^{1/3},
# \end{aligned}
# $$ (eq-06-laws)
#
# each with **two** free parameters for every batch size, so that their likelihoods compare without a penalty. The onset of a draw is taken as log-normal around
# this median with a scale of its own in every cell; a censored draw contributes the probability of coming later than the last layer at which an onset can be seen (the last but
# nine). Two questions, then. *Which law is better?* The difference of the two log-likelihoods, with the standard error of a sum over independent draws (Vuong's test); better means
# by more than 1.96 standard errors and by more than 3 (a factor of 20 in likelihood). *Is a law good?* The deviance, twice the
# log-likelihood that is lost against free medians in all cells, is about chi-squared with two degrees of freedom for each batch size at four widths. A law is
# confirmed if it is better than **both** others and not rejected at 1 percent, refuted if it is worse than one of them or rejected at 0.1 percent, and inconclusive otherwise; so at most one can be confirmed.

# %% mystnb={"figure": {"caption": "Onset depth against width, recentering without rescaling, Gaussian batches. Points are medians over draws, bars their 95 percent intervals; at the line of the last layer a full triangle stands for a median beyond it, an open triangle for an upper end of the interval beyond it. Above: all batch sizes that have an outlier state; on these axes a logarithmic law is a straight line. Below: three of the batches of 12 and more, in the same colors and at the same places, with the three laws as fitted by maximum likelihood; see where they part, inside and at the ends of the range of widths.", "name": "fig-06-onset"}, "image": {"alt": "Two panels with onset depth in layers over network width on a logarithmic axis. The upper one has one curve with error bars for each batch size from 8 on, with triangles on a line at the last layer for what lies beyond the run; the lower one has points for three batch sizes and, for each, three curves in its color and of different dash."}} tags=["hide-input"]
onset = []
for (n, width), part in parts[""].items():
    found = onset_summary(part["onsets"], part["returned"], latest=last - 50)
    onset.append({"n": n, "width": width, "depth": last, **found, "passed": found["draws"] - found["censored"]})
run.record("onset", onset)
lists = {n: [parts[""][n, width]["onsets"] for width in widths] for n in large}
doubling = onset_per_doubling(lists, widths, last, generator=bootstrap)
run.record("onset_per_doubling", doubling and {k: vars(v) if hasattr(v, "value") else v for k, v in doubling.items()})
last_seen = max(1, last - thresholds.hold + 1)
laws = compare_laws(lists, widths, last_seen)
run.record("onset_laws", laws)
chosen = [n for n in sizes if states.get(n) is not None] or sizes
figures.show(pictures.onset_figure(onset, laws, chosen, last))

# %% tags=["hide-input"]
figures.table(
    [
        (
            row["n"],
            row["width"],
            with_interval(row, "median", "low", "high"),
            *(row[key] for key in ("quartile_1", "quartile_3")),
            f"{row['censored']} of {row['draws']}",
        )
        for row in onset
        if row["n"] in chosen
    ],
    header=("n", "width", "median onset", "first quarter", "third quarter", "censored"),
    caption=f"Onsets in layers, watched to depth {last}; medians with their 95 percent intervals. A dash is a number beyond that depth.",
)
if laws is not None:
    figures.table(
        [
            (law, *(laws["laws"][law][key] for key in ("log_likelihood", "deviance", "degrees", "p_value")))
            for law in LAWS
        ],
        header=("law", "log-likelihood", "deviance", "degrees", "p-value"),
        caption=(
            f"The laws of growth over {laws['draws']} draws ({laws['censored']} censored) of batches "
            f"{', '.join(str(n) for n in laws['batch_sizes'])}."
        ),
    )
    figures.table(
        [
            (pair, *(found[key] for key in ("difference", "standard_error", "z")))
            for pair, found in (
                *((f"logarithm minus {law}", laws["against"][law]) for law in LAWS if law != "logarithm"),
                ("power minus cube root", laws["power_over_cube_root"]),
            )
        ],
        header=("log-likelihoods", "difference", "standard error", "z"),
        caption="Every pair of laws: difference of their log-likelihoods, its standard error (Vuong), and the quotient. Positive speaks for the first.",
    )
    figures.table(
        [
            (
                n,
                *(laws["laws"][law]["fits"][str(n)][key] for law in LAWS for key in ("slope", "deviance")),
            )
            for n in laws["batch_sizes"]
        ],
        header=("n", "logarithm", "deviance", "power", "deviance", "cube root", "deviance"),
        caption="Fitted growth of the median onset with the width, batch size by batch size (logarithm: layers per doubling; power: exponent), and what each law loses against free medians (chi-squared with the number of widths less two; at four widths a deviance above 9.21 rejects at 1 percent); the cube root's slope in layers per unit of (d/d₀)^(1/3).",
    )

# %% tags=["hide-input"]
run.judge("onset-logarithmic-in-width", "onset-power-of-width", "onset-cube-root-of-width")
spoken = {name: "(not measured)" for name in ("layers-narrow", "layers-wide", "layers-low", "layers-high")}
if doubling is not None:
    narrow, wide, bend = (doubling[key] for key in ("narrow", "wide", "difference"))
    measured = (narrow.value, wide.value, bend.low, bend.high)
    spoken = {name: f"{value:.1f}" for name, value in zip(spoken, measured, strict=True)}
spoken["middle-width"] = str(widths[len(widths) // 2])
spoken["doublings"] = f"{math.log2(widths[-1] / widths[0]):.3g}"
run.record("doubling_words", spoken)
for name in spoken:
    run.glue(name, f"doubling_words['{name}']")

# %% [markdown]
# "Measured" lists the difference of log-likelihoods in favor of the law (over the power for the logarithm, over the logarithm for the two others), its deviance, and the p-value of that. The logarithm is {glue:text}`verdict-onset-logarithmic-in-width`, the
# power {glue:text}`verdict-onset-power-of-width`, the cube root with a constant {glue:text}`verdict-onset-cube-root-of-width`. No law of two parameters has to be true;
# if all are refuted, then the growth is neither. How the rate itself changes can be read without any
# law: up to width {glue:text}`middle-width` a doubling costs {glue:text}`layers-narrow` layers, from there on
# {glue:text}`layers-wide`, in the mean over those batches of 12 and more whose medians are all observed, and the 95 percent bootstrap interval of the difference is
# {glue:text}`layers-low` to {glue:text}`layers-high`. A range of widths of {glue:text}`narrowest` to {glue:text}`widest` has {glue:text}`doublings` doublings;
# an asymptotic law needs more, which the GPU preset has.
#
# ## Whether it lasts: losses
#
# A *loss* is a run of ten layers not above 85° after the onset. Draws are watched for **different** times after their onset, since onsets differ and the run ends, so here
# censoring matters: a draw whose onset comes late has had little time to lose anything. {numref}`fig-06-kept` is the Kaplan-Meier estimate of the share that still has the
# outlier $t$ layers after its onset, with the censored draws counted as long as they were watched. The bands are Greenwood's, on the scale of $\log(-\log S)$; they say nothing
# as long as no draw has lost the outlier, and there the exact interval in the table does: of the draws whose onset is early enough that a loss within
# {glue:text}`horizon` layers would have been seen, the share that had one, with its interval by Clopper and Pearson.

# %% mystnb={"figure": {"caption": "Share of the draws that still have the outlier, along the layers since its onset: Kaplan-Meier estimates with pointwise 95 percent bands where they are defined, one curve for each width. The dotted line is the horizon of the table. A curve that stays at one has lost no draw.", "name": "fig-06-kept"}, "image": {"alt": "Panels for a few batch sizes with falling step curves over the layers since the onset, one with a band for each width, and a vertical dotted line at the horizon."}} tags=["hide-input"]
horizon = min(100, max(1, last // 2))
lasting = {"watched": last, "hold": thresholds.hold, "horizon": horizon}
kept = [
    {"n": n, "width": width, **lasting, **kept_summary(part["onsets"], part["return_layers"], **lasting)}
    for (n, width), part in parts[""].items()
    if n in judged
]
kept_by_size = []
for n in judged:
    for least_width in (0, 256):
        group = [part for (m, width), part in parts[""].items() if m == n and width >= least_width]
        starts, losses = ([layer for part in group for layer in part[key]] for key in ("onsets", "return_layers"))
        found = kept_summary(starts, losses, **lasting)
        kept_by_size.append(
            {"n": n, "from_width": least_width, "horizon": horizon}
            | {key: value for key, value in found.items() if key not in ("durations", "ended")}
        )
kept_pooled = []
for least_width in (0, 256):
    group = [part for (n, width), part in parts[""].items() if n in large and width >= least_width]
    starts, losses = ([layer for part in group for layer in part[key]] for key in ("onsets", "return_layers"))
    found = kept_summary(starts, losses, **lasting)
    counted = {key: found[key] for key in ("followed", "lost", "lost_low", "lost_high")}
    kept_pooled.append({"from_n": large[0], "from_width": least_width, "horizon": horizon, **counted})
run.record("kept_pooled", kept_pooled)
run.record("kept", kept)
run.record("kept_by_size", kept_by_size)
run.record("horizon", horizon)
run.record("widest_width", widths[-1])
run.glue("horizon", "horizon")
run.glue("widest", "widest_width")
kept_sizes = [n for n in sizes if n in (8, 12, 32)] or judged[:3]
figures.show(pictures.kept_figure(kept, kept_sizes, horizon))

# %% tags=["hide-input"]
figures.table(
    [
        (
            row["n"],
            "all" if row["from_width"] == 0 else f"{row['from_width']} and more",
            *(row[key] for key in ("followed", "lost")),
            None if row["lost_low"] is None else f"{100 * row['lost_low']:.1f} to {100 * row['lost_high']:.1f}",
            None if row["median"] is None else with_interval(row, "median", "median_low", "median_high"),
        )
        for row in [
            *kept_by_size,
            *(
                {"n": f"{row['from_n']} and more", "median": None, "median_low": None, "median_high": None} | row
                for row in kept_pooled
            ),
        ]
    ],
    header=("n", "widths", "followed", "lost", "95 %", "median kept"),
    caption=(
        f"Losses within {horizon} layers of the onset among the draws that could be followed so long, over all widths together, with the exact 95 percent "
        "interval of their share in percent; and the Kaplan-Meier median of the number of layers that the outlier is kept, where it was reached."
    ),
)
run.judge("outlier-stays")

# %% [markdown]
# "Measured" has lost and followed draws of batches of 12 and more, over all widths and over those of 256 and more. The criterion asks for two things: the upper end of the interval of this pooled share is at
# most 5 percent, and no single batch size is known to lose more. It does not ask every cell for an upper end of 5 percent, as earlier forms did: without any loss this takes 72
# followed draws, so that no cell could ever have confirmed the claim, whatever the truth. (The last change was made after a pilot.) A mixture of draws with
# different loss probabilities has a *smaller* variance than a binomial number with their mean, so the pooled interval errs on the safe side; it speaks about this map's mixture of sizes and widths, and
# the table about each size.
#
# ## The same with rescaling on
#
# The essay says that the escaped point appears when *all three* components of batch normalization are present. The paper's
# abstract says: recentering and the non-linearity. The two differ by one stage, which is easily switched on:
# {numref}`fig-06-beside` shows both, for the same batch sizes and width.

# %% mystnb={"figure": {"caption": "Rescaling off (solid) beside rescaling on (dashed, full batch normalization), Gaussian batches, for three batch sizes. Above: angle between the sample of largest norm and the mean of the others. Below: largest norm over the median norm of the others, on a logarithmic axis. Lines are medians, bands the 10th to the 90th percentile of the draws.", "name": "fig-06-beside"}, "image": {"alt": "Two panels over depth. For each of three batch sizes a solid and a dashed line with bands: angles in degrees above, largest norm over median norm on a logarithmic axis below."}} tags=["hide-input"]
beside = [n for n in powers if n in (8, 16, 64)] or powers[:3]
pairs = [(n, parts[""][n, middle_width], parts["_with_rescaling"][n, middle_width]) for n in beside]
figures.show(pictures.beside_figure(pairs, middle_width))

# %% mystnb={"figure": {"caption": "Full batch normalization, Gaussian batches. Top: median angle between the sample of largest norm and the mean of the others at depth 30, in degrees, on the same color scale as the map without rescaling; middle: the same at the largest depth; bottom: median of the largest norm over the median norm of the others, at the largest depth, on a logarithmic color scale. Blank cells were not followed so far.", "name": "fig-06-rescaled-map"}, "image": {"alt": "Three heat maps one below the other, batch sizes as rows and widths as columns: angles in degrees at two depths, then norm ratios."}} tags=["hide-input"]
figures.show(
    pictures.corner_figure(
        [
            (f"rescaling on, depth {early}", rescaled["cells"], early, "angle_deg", "angle (degrees)", (55, 90), ".0f"),
            (f"rescaling on, depth {last}", rescaled["cells"], last, "angle_deg", "angle (degrees)", (55, 90), ".0f"),
            (f"rescaling on, depth {last}", rescaled["details"], last, "heavy", "largest norm / median", None, ".2f"),
        ]
    )
)

# %% tags=["hide-input"]
reference = {n: symmetric_state(n) for n in powers if n >= 3}
figures.table(
    [
        (judgment["depth"], judgment["verdict"], judgment["holding"], judgment["undecided"], judgment["failing"])
        for judgment in judgments["_with_rescaling"]
    ],
    header=("depth", "verdict", "cells that hold", "undecided", "fail"),
    caption="The same rules with rescaling on, over the widths at which every batch size reaches the depth.",
)
figures.table(
    [
        (
            n,
            math.degrees(reference[n].angle),
            *(
                (select(rescaled["cells"], n=n, width=w, depth=last) or [{"angle_deg": None}])[0]["angle_deg"]
                for w in widths
            ),
        )
        for n in reference
    ],
    header=("n", "symmetric state", *(f"width {width}" for width in widths)),
    caption=f"Angle to the mean of the others, degrees: all samples equivalent at infinite width, and measured at depth {last} with rescaling on.",
)
run.judge("full-batch-norm-escaped-point", "full-batch-norm-norms-within-a-fifth")

# %% tags=["hide-cell"]
figures.table(
    cell_rows(rescaled["cells"]),
    header=header,
    caption=f"All cells with rescaling, Gaussian batches: {of_cells}",
)

# %% [markdown]
# The first column of the second table is the state in which all samples are equivalent: equal norms, all cosines
# $J(-1/(n-1))$, as for batch normalization in chapter 3. The angle to the mean of the others is far from 90° there for a simple reason:
# vectors with non-negative entries and positive cosines between them have a mean that points along all of them.
#
# The verdict on the escaped point goes by the medians **and** by the exact intervals of the share of the draws that pass both rules: confirmed if this share is known to reach one half in all batches of
# 12 and more, refuted if it is known to stay below in every cell.
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

# %% mystnb={"figure": {"caption": "Full batch normalization at width 1024 (or the largest below), started from orthogonal samples of which one is three times as long as the others: norm of that sample over the median norm of the others. Lines are medians over networks, bands the 10th to the 90th percentile of the networks. A line that comes down to 1 has forgotten the push.", "name": "fig-06-push"}, "image": {"alt": "Norm of the pushed sample over the median of the others against depth, one line with a band for each of a few batch sizes."}} tags=["hide-input"]
push_sizes = [n for n in powers if n >= 8] or [n for n in sizes if n >= 3]
push_width = max([width for width in widths if width <= 1024], default=widths[0])
factor, push_draws = 3.0, max(2, parameters.n_seeds // 4)
pushes = {
    n: run.resume(
        f"push-{n}-{push_width}",
        lambda n=n: pushed(
            n,
            push_width,
            last,
            full,
            factor=factor,
            draws=push_draws,
            generator=run.generator("push", n, push_width),
        ),
    )
    for n in progress(push_sizes, "pushes")
}
run.record(
    "pushed",
    [
        {"n": n, "width": push_width, "depth": last, "draws": push_draws, "start": factor}
        | {key: value for key, value in found.items() if key != "curves"}
        for n, found in pushes.items()
    ],
)
figures.show(pictures.push_figure(pushes, push_width))

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
# ## On handwritten digits
#
# Gaussian batches of the network's own width are nearly symmetric: norms and cosines spread by a share of about $1/\sqrt d$. Real data are not. Batches of different handwritten
# digits have norms and mutual angles of their own, and 64 dimensions whatever the width. {numref}`fig-06-digits` is the literal test on
# them, without and with rescaling, and then the largest depth without; blank cells were not followed so far.

# %% mystnb={"figure": {"caption": "Handwritten digits: median angle between the sample of largest norm and the mean of the others, in degrees, with batch size from top to bottom and width from left to right. First at depth 30 without rescaling, then at the largest depth without, then at depth 30 with rescaling. Blank cells were not followed so far. Compare the first panel with the depth-30 columns of the Gaussian map.", "name": "fig-06-digits"}, "image": {"alt": "Three heat maps one below the other, batch sizes as rows and widths as columns, angles in degrees in every cell."}} tags=["hide-input"]
figures.show(
    pictures.corner_figure(
        [
            (title, source["cells"], depth, "angle_deg", "angle (degrees)", (55, 90), ".0f")
            for title, source, depth in (
                (f"digits, no rescaling, depth {early}", on_digits, early),
                (f"digits, no rescaling, depth {last}", on_digits, last),
                (f"digits, rescaling on, depth {early}", on_digits_rescaled, early),
            )
        ]
    )
)

# %% tags=["hide-input"]
for name, switch in (("_on_digits", "without rescaling"), ("_on_digits_with_rescaling", "with rescaling")):
    figures.table(
        [
            (
                row["depth"],
                row["verdict"],
                row["widths"][-1],
                *(row[key] for key in ("from_n", "holding", "undecided", "failing")),
            )
            for row in judgments[name]
        ],
        header=("depth", "verdict", "widths to", "from n", "hold", "undecided", "fail"),
        caption=f"The same rules on handwritten digits {switch}, over the widths at which every batch size reaches the depth.",
    )
run.judge("review-test-digits-depth-30", "review-test-digits-depth-200", "full-batch-norm-escaped-point-digits")

# %% tags=["hide-input"]
digit_onsets = [
    {"n": n, "width": width} | onset_summary(part["onsets"], part["returned"], latest=part["watched"] - 50)
    for (n, width), part in parts["_on_digits"].items()
    if part["watched"] == last
]
run.record("onset_on_digits", digit_onsets)
beside_gaussian = {(row["n"], row["width"]): row for row in onset}
figures.table(
    [
        (
            row["n"],
            row["width"],
            with_interval(row, "median", "low", "high"),
            f"{row['censored']} of {row['draws']}",
            with_interval(beside_gaussian[row["n"], row["width"]], "median", "low", "high"),
        )
        for row in digit_onsets
    ],
    header=("n", "width", "digits", "censored", "Gaussian"),
    caption=f"Median onset in layers, with its 95 percent interval, on digits beside that on Gaussian batches, for the cells followed to depth {last}; a dash is beyond that depth.",
)

# %% tags=["hide-cell"]
for source, switch in ((on_digits, "without"), (on_digits_rescaled, "with")):
    figures.table(
        cell_rows(source["cells"]),
        header=header,
        caption=f"All cells on digits {switch} rescaling: {of_cells}",
    )

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
# probability that two networks single out the same sample: it is $1/n$ if the weights decide alone, and 1 if the input does. Four kinds of batch:
# symmetric; Gaussian of the network's width; handwritten digits; and Gaussian points on a line, the input of the paper's
# simplified model, where chapter 4 has the extremes escape. Only draws that do have an outlier count: the angle rule holds, and the largest
# norm is at least twice the second, so no tie is ever counted and none has to be broken. A standard error over a few batches is itself uncertain, so the criteria go by Student's intervals.
# In symmetric batches all draws are independent, whatever the batch, so there the share of draws with an outlier has an exact interval, and a chi-squared test asks whether all samples are chosen equally often. On the line the
# criterion takes the wider of Student's interval over batches and the exact interval of the pooled share, which is not of length zero when no draw misses.

# %% mystnb={"figure": {"caption": "Probability that two networks with independent weights single out the same sample of the same batch, with 95 percent intervals by Student's t over batches; logarithmic axis. The black bars are chance, $1/n$. Symmetric batches must sit on them, within their bars.", "name": "fig-06-identity"}, "image": {"alt": "Points with error bars on a logarithmic probability axis for each batch size and width, one marker for each of four kinds of batches, and short black bars at chance level."}} tags=["hide-input"]
identity_sizes = [n for n in sizes if n in (16, 32)] or [n for n in sizes if n >= 3][-1:]
kinds = {"gaussian": "Gaussian batch", "symmetric": "symmetric batch", "digits": "digits", "line": "points on a line"}
places = [(n, width) for n in identity_sizes for width in widths[:2]]
places = [place for place in places if place[0] == identity_sizes[0] or place[1] == widths[0]]
found = [
    run.resume(
        f"identity-{kind}-{n}-{width}",
        lambda n=n, width=width, kind=kind: identity(
            n,
            width,
            last,
            kind,
            batches=max(2, parameters.n_seeds // 5),
            redraws=max(2, 5 * parameters.n_seeds // 12),
            thresholds=thresholds,
            generator=run.generator("identity", kind, n, width),
        ),
    )
    for n, width, kind in progress([(*place, kind) for place in places for kind in kinds], "identities")
]
run.record("identity", found)
figures.show(pictures.identity_figure(found, kinds))

# %% tags=["hide-input"]
figures.table(
    [
        (
            row["n"],
            row["width"],
            kinds[row["kind"]],
            with_interval(row, "share_with_outlier", "outlier_low", "outlier_high", ".2f"),
            None
            if row["agreement"] is None
            else with_interval(row, "agreement", "agreement_low", "agreement_high", ".3f"),
            row["chance"],
            1 / row["agreement"] if row["agreement"] else None,
        )
        for row in found
    ],
    header=("n", "width", "batch", "with outlier", "same outlier", "chance", "candidates"),
    caption=(
        "Share of the draws with an outlier (exact interval), probability of the same outlier (Student's t over batches; estimated without bias, so an end can be below zero), and one over it, the effective number of candidates."
    ),
)
figures.table(
    [
        (
            row["n"],
            row["width"],
            kinds[row["kind"]],
            *(row[key] for key in ("share_farthest", "share_farthest_error", "share_longest")),
            None
            if row["share_extreme"] is None
            else with_interval(row, "share_extreme", "extreme_low", "extreme_high", ".3f"),
            row["uniform_p"],
        )
        for row in found
    ],
    header=("n", "width", "batch", "farthest", "its error", "longest", "end of the line", "p, uniform"),
    caption=(
        "Which sample: share of the outliers that lay farthest from the batch mean at the input (with its standard error), that had the largest norm there, and, on a line, that were one of its two ends; "
        "for symmetric batches the p-value of the hypothesis that every sample is equally often the outlier."
    ),
)
run.judge(
    "outlier-in-symmetric-batches",
    "outlier-identity-unstable",
    "outlier-identity-unstable-digits",
    "outlier-of-a-line-is-an-extreme",
)

# %% [markdown]
# ### How much does length alone decide?
#
# In these batches many things differ between samples at once. So take a symmetric batch, orthogonal samples of length 1, and change **one thing**: the length of one sample. At factor 1 the
# theorem gives exactly $1/n$; how fast does the probability rise with the length? At infinite width a batch escapes only if its norms spread by more than a
# factor of about $1 + 1.2/n$ (the separatrix, in the chapter on infinite width), and then the longer sample wins with certainty: a step. At finite width the step is smeared.
# In {numref}`fig-06-dose` every point has its own networks, and its bar is the exact interval.

# %% mystnb={"figure": {"caption": "A symmetric batch in which one sample has another length: share of the networks (of those with an outlier) whose outlier is this sample, with exact 95 percent intervals, on a logarithmic axis of the length. Dotted lines, named at their right ends: chance, $1/n$. See whether the curves cross it at length 1, and how steep they are there.", "name": "fig-06-dose"}, "image": {"alt": "Rising curves with error bars of a share between 0 and 1 over the length of one sample from one half to three, one for each batch size and width, with dotted lines at chance level."}} tags=["hide-input"]
factors = [0.5, 0.8, 1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0]
dose = [
    row
    for n, width in progress(places, "lengths")
    for row in run.resume(
        f"dose-{n}-{width}",
        lambda n=n, width=width: dose_response(
            n,
            width,
            last,
            factors,
            networks=parameters.n_seeds,
            thresholds=thresholds,
            generator=run.generator("dose", n, width),
        ),
    )
]
run.record("dose", dose)
figures.show(pictures.dose_figure(dose))

# %% tags=["hide-input"]
figures.table(
    [
        (
            *(row[key] for key in ("n", "width", "factor", "with_outlier", "hits")),
            with_interval(row, "share", "low", "high", ".2f"),
            row["chance"],
        )
        for row in dose
    ],
    header=("n", "width", "length", "with outlier", "this one", "share", "chance"),
    caption=f"One sample of another length in a symmetric batch, at depth {last}.",
)
run.judge("outlier-follows-input-norm")

# %% [markdown]
# ## What the test has settled
#
# * Literally, at depth 30: {glue:text}`verdict-review-test-depth-30`. A test at a fixed depth measures speed, not the limit.
# * On handwritten digits: {glue:text}`verdict-review-test-digits-depth-30` at depth 30, {glue:text}`verdict-review-test-digits-depth-200` by depth 200.
# * By depth 200: {glue:text}`verdict-review-test-depth-200`; at the last depth of the map all rules hold {glue:text}`late-from`, and
#   {numref}`fig-06-onset` shows how many layers each width needs.
# * That batches of four and six show no outlier in the median (single networks do, for a while) is {glue:text}`verdict-test-batches-up-to-six`.
# * For batch normalization with all three components, an orthogonal escaped point is
#   {glue:text}`verdict-full-batch-norm-escaped-point`. Recentering **without** rescaling, which the paper's abstract speaks of, is known in
#   the field as mean-only batch normalization {cite}`salimans2016`.
# * Full batch normalization in large batches is another matter again: that a heavy sample survives there and is forgotten in small ones is
#   {glue:text}`verdict-full-batch-norm-heavy-sample`. The largest median angle of that sample to the mean of the
#   others, over the batch sizes tried, is {glue:text}`pushed-angle:.0f`°.
# * Whether the outlier is a property of a data point: that two initializations agree on it less than twice as often as by chance is
#   {glue:text}`verdict-outlier-identity-unstable` for Gaussian batches and {glue:text}`verdict-outlier-identity-unstable-digits` for digits, and that chance alone decides is
#   {glue:text}`verdict-outlier-in-symmetric-batches` for symmetric ones. That a sample of twice the others' length wins three networks in four is
#   {glue:text}`verdict-outlier-follows-input-norm`.
# * A draw that has the outlier keeps it: {glue:text}`verdict-outlier-stays`, for batches of 12 and more.
#
# ### What a GPU run adds
#
# All of the above is one run, with {glue:text}`total-draws` draws in the maps. The preset `notebooks/presets/06_falsification_test.paper.yml` is for a GPU; it has
# **never been executed**, and no number on this page comes from it. It adds
#
# * batch sizes 5, 7, 10, 48, 96 and 256: 5 to 7 straddle the bifurcation of the infinite-width map, and 256 extends the growth law;
# * widths 128, 512, 2048 and 16384, that is eight doublings in steps small enough to tell a power from a logarithm;
# * depths 400 and 1000, which leave fewer onsets censored at large widths and let losses be followed for longer;
# * 200 draws in **every** cell and no budget, so that none of the four conditions has blank cells, and the interval of a share is about half as long (a third in the cells of fewest draws).
#
# ## Exercises
#
# ```{exercise} A test that cannot fail
# :label: ex-06-two
# *Pencil and paper, easy, 15 minutes.* In a batch of $n=2$ call the longer sample "the outlier". With {prf:ref}`thm-06-two`, what is the probability that one and the same sample is the outlier in
# all of the layers $1,\dots,L$? What would the probability be for a claim worth testing? Which of the three rules of this page (angle, norms, share of the draws) can fail at $n=2$?
# ```
#
# ```{admonition} Hint
# :class: dropdown
# The ratios of different layers are independent, and exchanging the two samples turns $R_t$ into $1/R_t$.
# ```
#
# ```{solution} ex-06-two
# :label: sol-06-two
# :class: dropdown
# Exchanging the samples replaces $h$ by $-h$, which has the same law, so $P(R_t>1)=P(R_t<1)=\tfrac12$ (equality has probability zero). By independence all $L$ layers agree with
# probability $2\cdot2^{-L}$. If there were an outlier in the sense of the claim, the probability would tend to a positive number. The rule on the angle cannot fail (as long as no sample is zero): nothing was at
# risk. The rule on the norms can, and does in wide networks, where the ratio tends to 1; the rule on the share asks for angle **and** norms in one draw and fails with it.
# A criterion must be able to come out otherwise.
# ```
#
# ```{exercise} Does the threshold decide?
# :label: ex-06-threshold
# *With `bnlib`, medium, 20 minutes.* The rule asks for 85°. Use `bnlib.outlier_states.outlier_state` to find, for thresholds of 80°, 85°, 88° and 89°, the
# smallest batch size whose state at infinite width passes. Then use `symmetric_state` to find the largest batch size whose *symmetric* state, without any outlier, passes a threshold of 60°, 70° and 80°.
# Which of the verdicts on this page could change with the threshold?
# ```
#
# ```{admonition} Hint
# :class: dropdown
# Both functions return a `State` whose `angle` is in radians; `outlier_state` returns `None` up to $n=6$.
# ```
#
# ```{solution} ex-06-threshold
# :label: sol-06-threshold
# :class: dropdown
# `[next(n for n in range(7, 65) if math.degrees(outlier_state(n).angle) >= a) for a in (80, 85, 88, 89)]`
# gives 7, 8, 10 and 12. The angle gap closes like $n^{-3}$, so a stricter threshold moves $n_0$ by little. For the symmetric state,
# `[max(n for n in range(3, 999) if math.degrees(symmetric_state(n).angle) >= a) for a in (60, 70, 80)]` gives 17, 5 and 3: at 60° the rule on the angle would call batches of 17 without
# any outlier orthogonal, and even at 80° it does so for 3. The rule on the norms still distinguishes them, since in the symmetric state the largest norm is no larger than the second.
# ```
#
# ```{exercise} How many draws?
# :label: ex-06-draws
# *Pencil and paper, then one line of code, medium, 20 minutes.* Suppose that in some cell 40 percent of the draws are above 85°. With $m$ draws, how likely is it that the cell counts as
# *undecided*? Take $m = 8$, $48$ and $200$.
# ```
#
# ```{admonition} Hint
# :class: dropdown
# Express "fails" and "holds" by the number $N$ of draws above 85° and the rank $k$ of {eq}`eq-06-interval`.
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
# ```{exercise} Narrow networks
# :label: ex-06-narrow
# *Change a parameter, medium, 30 minutes.* Run the chapter with narrow networks,
#
#     .venv/bin/papermill notebooks/06_falsification_test.ipynb narrow.ipynb -y '{batch_sizes: [5, 8, 12, 16], widths: [8, 16, 32, 64], depths: [30, 100, 200], results_dir: build/narrow}'
#
# Compare the onsets, and the losses, with the page's. In which direction does each change as the width falls, and why? Which statement of this chapter does the batch of 5 put at risk?
# ```
#
# ```{admonition} Hint
# :class: dropdown
# How large is a fluctuation of a squared norm in one layer, relative to its mean, and how far is it from the symmetric state to the separatrix, and from the outlier state to the separatrix?
# ```
#
# ```{solution} ex-06-narrow
# :label: sol-06-narrow
# :class: dropdown
# Fluctuations of a squared norm are of relative order $1/\sqrt d$ a layer, more for the outlier, which is active in about half of the neurons only. They carry a batch over the separatrix in **both** directions. The way out is short
# (a spread of norms of $1.2/n$), so the batch first crosses earlier, the narrower the network. But an onset is *ten layers in a row* above 85°, and the same fluctuations break such runs: two effects compete, the median onset need not be
# monotone in the width, and the table of onsets shows, batch size by batch size, on which side of its minimum these widths lie. On the page's widths the first effect is the stronger one if its medians rise with the width. The way back is long when the outlier's ratio is $n-1$, but short for small $n$, where the two
# states nearly meet; so the argument predicts losses at small widths and small $n$ first; the table of losses has them by batch size. At infinite width there is no outlier state below $n=$ {glue:text}`smallest-state`, so a batch of 5 has none; in a narrow network
# a single draw may pass 85° for ten layers all the same, and lose it again. "No outlier up to six" is a statement about medians, and this run shows whether medians at widths that the page does not have respect it. (At width 8 a given sample is silent in all neurons of a layer
# with a probability of about $2^{-8}$; its angle is undefined then, and the draw does not count as one with an outlier.)
# ```
#
# ```{exercise} Escape without rescaling, in an infinite batch
# :label: ex-06-escape
# *Pencil and paper with a short loop, harder, 30 minutes.* Start from $\epsilon_0 = 0.05$ in {prf:ref}`thm-06-infinite-batch` and iterate until $s = 64$. How many layers does it take, and
# how many of them are spent below $s = 2$? Explain the first part by turning $\epsilon' = \epsilon + \epsilon^2/(2(\pi-1))$ into a differential equation.
# How does the number of layers depend on the width, if $\epsilon_0 \sim 1/\sqrt d$ and nothing else fluctuates?
# ```
#
# ```{admonition} Hint
# :class: dropdown
# What does $1/\epsilon$ do in one layer?
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
#
# ```{exercise} The waiting time of a small batch
# :label: ex-06-waiting
# *Open, days.* The page argues that at fixed $n\ge7$ the onset grows like $e^{dV_n}$ with the width. Find $V_n$, or bounds on it: the least "action" of a path of Gram matrices that leads from the symmetric state
# to the separatrix, where a step from $\Sigma$ to $\Sigma'$ costs the large-deviation rate of the empirical Gram matrix of $d$ independent neurons. How does $V_n$ behave for large $n$? Is it of
# order $n^{-3}$, as the crossover $d\sim n^3$ suggests? Test it at $n=8$ with widths between 64 and 512, where onsets can be observed.
# ```
#
# ```{admonition} Hint
# :class: dropdown
# Linearize first: near the symmetric state the spread of the norms is an autoregressive process with a multiplier $1-c/n$ and noise of variance of order $1/d$. The probability that its stationary law puts beyond the separatrix gives a first guess at $V_n$.
# ```
#
# ```{solution} ex-06-waiting
# :label: sol-06-waiting
# :class: dropdown
# We do not know the answer. The first guess: a Gaussian stationary law of variance $\kappa n/d$ exceeds $1.2/n$ with a probability of order $\exp(-0.72\, d/(\kappa n^3))$, so $V_n\approx 0.72/(\kappa n^3)$. It overestimates the
# barrier, since the pull weakens towards the separatrix, where it vanishes. A plot of the logarithm of the median onset against the width at $n=8$ should approach a straight line; if it bends down, the argument is wrong.
# ```

# %% tags=["hide-input"]
run.finish()
