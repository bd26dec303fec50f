# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The rank theorem: how many random ReLU neurons until full rank
#
# :::{admonition} In short
# :class: tip
# **Question.** Theorem 3 of the paper {cite}`nachum2024` says that a random ReLU layer lifts a batch to full rank, and that the expected
# number of neurons needed is at most $n/\gamma(X)$. Is that true, how good is the bound, and for which batches does it hold?
#
# **Answer.** With the reading of $\gamma$ given below the theorem has a short proof, and the measurement's verdict is
# {glue:text}`verdict-theorem-3-expected-neurons`; for the high-probability form it is
# {glue:text}`verdict-theorem-3-high-probability`. In dimension {glue:text}`main-dim:d` the {glue:text}`main-n:d` samples of the largest
# batch needed {glue:text}`main-mean:.1f` neurons on average; the theorem's bound is at least {glue:text}`bound-at-least:.1f` there and at most {glue:text}`main-bound:.1f`. In the plane
# {glue:text}`planar-n:d` samples needed {glue:text}`planar-mean:.0f` where the bound is {glue:text}`planar-bound:.0f`. That full rank needs
# all pairs to be non-collinear, antipodal pairs included, is {glue:text}`verdict-rank-collinearity-necessary`: the exact condition
# is derived below.
#
# **And training?** The essay's account of the paper's Figure 2, on digits, at {glue:text}`deepest:d` hidden layers: that the rank of a He network has collapsed to a
# small fraction is {glue:text}`verdict-essay-he-rank-at-1e-2` at the tolerance 0.01, {glue:text}`verdict-essay-he-rank-at-1e-3` at 0.001 and
# {glue:text}`verdict-essay-he-rank-at-1e-5` at 0.00001; that it trains all the same is {glue:text}`verdict-essay-high-rank-not-necessary`
# (under conditions: some of its networks reach the accuracy that is asked for, and that most do is not shown). A start of
# rank two in every hidden layer settles the question without any tolerance: that low rank does not by itself block training is
# {glue:text}`verdict-review-low-rank-does-not-block`.
# :::

# %% tags=["parameters", "hide-input"]
device = "auto"
seed = 0
results_dir = "build/runs"
batch_sizes = [4, 8, 16, 32, 64]
input_dim = 16
n_trials = 300
depths = [1, 2, 4, 8, 16, 32]
width = 128
training_batch = 128
n_networks = 5
n_rank_networks = 20
epochs = 60
learning_rates = [0.003, 0.01, 0.03, 0.1, 0.3]
selection_networks = 4
selection_rounds = [3, 8, 20]

# %% tags=["hide-input"]
from bnlib.parameters import check, integer, integers, rationals

parameters = check(
    globals(),
    batch_sizes=integers(minimum=2),
    input_dim=integer(minimum=2),
    n_trials=integer(minimum=2),
    depths=integers(minimum=1),
    width=integer(minimum=2),
    training_batch=integer(minimum=2, maximum=1028),
    n_networks=integer(minimum=2),
    n_rank_networks=integer(minimum=2),
    epochs=integer(minimum=1),
    learning_rates=rationals(minimum_length=1),
    selection_networks=integer(minimum=2),
    selection_rounds=integers(minimum=1),
)

# %% tags=["hide-input"]
import math

import numpy as np
import torch

from bnlib import figures, geometry, layers, rank_figures, rank_summaries, rank_training, records
from bnlib import rank_experiments as experiments
from bnlib.collinear import attainable_rank
from bnlib.gamma import gamma_bounds
from bnlib.planar_gamma import gamma_planar, sectors
from bnlib.progress import progress
from bnlib.rank import neurons_for_confidence, orthogonal_neurons_bound, rank_times, tail_bounds

run = records.start("02_rank_theorem", parameters)


def plus_minus(mean, error):
    """A mean with its standard error, for a table; an error that the mean's last digit cannot feel is left out."""
    return f"{mean:.4g} (error below 10⁻⁹)" if 0 < error < 1e-9 else f"{mean:.4g} ± {error:.2g}"


# %% [markdown]
# ## The claim
#
# A batch $X \in \mathbb{R}^{n \times d_0}$ has its samples as rows. A *neuron* is a weight vector $w \in \mathbb{R}^{d_0}$ with standard
# Gaussian entries; it contributes the column
#
# $$
# a(w) = \bigl(\mathrm{ReLU}(w \cdot x_1), \dots, \mathrm{ReLU}(w \cdot x_n)\bigr)^{\top} \in \mathbb{R}^n .
# $$ (eq-02-column)
#
# A layer of width $d$ is a matrix of $d$ such columns from independent neurons. The variance of the weights scales the columns and changes no
# rank, so it plays no part in this chapter. Let $T$ be the number of neurons after which the columns span $\mathbb{R}^n$.
#
# What the sources report of the paper {cite}`nachum2024`, by way of the review {cite}`pith2026`:
#
# * *Theorem 3.* If no two samples are collinear (the review says columns of $X$; we take them to be the samples), one random ReLU layer lifts the batch to full rank with high probability, and the
#   expected number of neurons needed is at most $n/\gamma(X)$.
# * *Appendix B, equation 28.* A Chernoff bound gives the high-probability form. The review finds the step from 28c to 28d too short.
#
# None of them says what $\gamma(X)$ is, and the paper's text is not at hand. So **the definition below is ours**: it is the natural
# quantity that makes the statement provable. The step 28c to 28d cannot be judged without the equations; a complete derivation of the
# high-probability form stands in its place. ("Theorem 3" always means the paper's; this book's own theorems carry links.)
#
# ```{prf:definition} The constant of a batch
# :label: def-02-gamma
# For $v \in \mathbb{R}^n$ put $f_v(w) = v \cdot a(w) = \sum_j v_j\,\mathrm{ReLU}(w \cdot x_j)$. Then
#
# $$
# \gamma(X) = \min_{v \ne 0} P_w\bigl[f_v(w) \ne 0\bigr].
# $$ (eq-02-gamma)
# ```
#
# In words: take any direction $v$ in $\mathbb{R}^n$; how likely is it that a fresh neuron sees it? $\gamma$ is the answer for the direction that is
# hardest to see. The minimum is attained: the hyperplanes $w \cdot x_j = 0$ cut the space of neurons into finitely many cones, on each cone the
# same samples are active, so $f_v(w) = w \cdot g$ with one vector $g$; it vanishes on the whole cone if $g = 0$ and almost nowhere on it
# otherwise. Only finitely many probabilities can occur.
#
# ### A picture in the plane
#
# For samples in the plane only the direction of $w$ matters, and the cones are sectors of a circle. {numref}`fig-02-circle` shows five samples and
# a $v$ that attains the minimum: its $f_v$ is *silent* on most of the circle.

# %% tags=["hide-input"]
picture_angles = np.deg2rad([10, 40, 65, 165, 280])
picture_batch = np.stack([np.cos(picture_angles), np.sin(picture_angles)], axis=1)
picture = gamma_planar(picture_batch)
picture_sectors = sectors(picture_batch, picture.witness)
run.record("picture", {"gamma": picture.gamma, "samples_in_block": [j + 1 for j in picture.blocks[0]]})
run.glue("picture-gamma", "picture['gamma']")

# %% mystnb={"figure": {"caption": "Five samples in the plane (arrows). Above: the circle of neuron directions, cut by the rays that are orthogonal to a sample; shaded are the sectors in which $f_v$ is not zero, for a $v$ that attains the minimum of {eq}`eq-02-gamma`. Below: $f_v$ along the circle, for $w$ of length one. The shaded share of the circle is $\\gamma(X)$.", "name": "fig-02-circle"}, "image": {"alt": "Above, a circle with five arrows from its center and two opposite shaded wedges, each about 55 degrees wide; the rest of the circle is white. Below, a curve over the angle of w that is zero except over the two shaded intervals, where it forms two equal peaks, half a turn apart."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, height=3.6)
rank_figures.draw_circle(axes[0, 0], picture_batch, picture_sectors)
rank_figures.draw_along_circle(axes[1, 0], picture_batch, picture.witness, picture_sectors)
figures.show(figure)

# %% [markdown]
# For this batch $\gamma(X)$ is {glue:text}`picture-gamma:.4f`.
#
# ## The theorem and its proof
#
# ```{prf:theorem} Waiting time until full rank (Theorem 3 of the paper, with our $\gamma$)
# :label: thm-02-waiting
# Let $\gamma = \gamma(X) > 0$ and let the neurons be independent. Then $T$ is finite with probability one, it is stochastically at most a sum $S$
# of $n$ independent geometric waiting times with success probability $\gamma$, and
#
# $$
# \frac{1}{\gamma} \;\le\; \mathbb{E}\,T \;\le\; \frac{n}{\gamma}.
# $$ (eq-02-waiting)
# ```
#
# ```{prf:proof}
# *Upper bound.* Suppose that the first $k$ neurons have given rank $r < n$. Their columns span a proper subspace, so there is a
# $v \ne 0$ that is orthogonal to all of them; choose one by a rule that looks at these $k$ neurons only. The next neuron is independent of them.
# If $f_v(w) = v \cdot a(w) \ne 0$, then $a(w)$ is not in the span, and the rank rises to $r + 1$. So given the past, and whatever it was, the rank
# rises with probability at least $\gamma$.
#
# Toss one coin per neuron with success probability exactly $\gamma$, coupled so that a success implies a rise (if the conditional probability of a rise
# is $p \ge \gamma$, declare a rise a success with probability $\gamma/p$). The coins are independent, because each has success probability $\gamma$
# given all the past. After $n$ successes the rank is $n$. The number $S$ of tosses until the $n$-th success is a sum of $n$ independent geometric times,
# $T \le S$, and $\mathbb{E}\,S = n/\gamma$.
#
# *Lower bound.* Take a $v$ that attains the minimum. Until a neuron has $f_v(w) \ne 0$, all columns are orthogonal to $v$ and the rank is
# below $n$. The wait for the first such neuron is geometric with mean $1/\gamma$.
# ```
#
# **Independent neurons** are a hypothesis that cannot be dropped: identical neurons have all $\gamma$'s in the world and rank one for ever. Within one layer of a network at
# initialization the neurons are independent, given the layers before; so the theorem applies layer by layer, with $X$ the representation that the layer receives. After a training step they no longer
# are, and the theorem is silent. Apart from independence, the Gaussian law entered only through $\gamma$. The lower bound is worth as much as the upper one: $n/\gamma$ is
# right up to a factor of $n$, never more.
#
# ### How large can $\gamma$ be?
#
# ```{prf:lemma} Parity
# :label: lem-02-parity
# Let $m = \sum_j v_j x_j = X^{\top} v$. Then $f_v(w) = \frac12 \sum_j v_j \lvert w \cdot x_j\rvert + \frac12\, w \cdot m$. If $m \ne 0$, then
# $P[f_v \ne 0] \ge \frac12$.
# ```
#
# ```{prf:proof}
# $\mathrm{ReLU}(t) = (\lvert t\rvert + t)/2$ gives the formula. Hence $f_v(w) - f_v(-w) = w \cdot m$, which is almost never zero if $m \ne 0$: $f_v(w)$
# and $f_v(-w)$ do not both vanish. They vanish with the same probability, since $w$ and $-w$ have the same law; so that probability is at most $\frac12$.
# ```
#
# ```{prf:proposition} Linearly independent samples
# :label: prop-02-half
# Always $\gamma(X) \le \frac12$. If the samples are linearly independent, $\gamma(X) = \frac12$ and $\mathbb{E}\,T \le 2n$.
# ```
#
# ```{prf:proof}
# $v = e_1$ gives $f_v = \mathrm{ReLU}(w \cdot x_1)$, which is positive with probability $\frac12$ (never, if $x_1 = 0$). If the samples are independent,
# $v \ne 0$ implies $m = X^{\top} v \ne 0$, and {prf:ref}`lem-02-parity` applies.
# ```
#
# So only the $v$ with $m = 0$ can push $\gamma$ below one half, and for these $f_v$ is even: it is silent at $w$ if and only if it is silent at $-w$. This is
# all that the exact computations below start from.

# %% [markdown]
# ## With high probability: the Chernoff step, written out
#
# ```{prf:theorem} High-probability form
# :label: thm-02-tail
# Let $\gamma$ be $\gamma(X)$ or any lower bound of it, and $\lambda = k\gamma/n > 1$. Then
#
# $$
# \begin{aligned}
# P[T > k] &\le P\bigl[\mathrm{Bin}(k, \gamma) \le n - 1\bigr] \\
# &\le e^{-n(\lambda - 1 - \ln\lambda)} \le \exp\Bigl(-\frac{(k\gamma - n)^2}{2k\gamma}\Bigr).
# \end{aligned}
# $$ (eq-02-tail)
#
# So a layer of width
#
# $$
# k \ge \frac{1}{\gamma}\Bigl(n + \ln\tfrac1\varepsilon + \sqrt{2 n \ln\tfrac1\varepsilon + \ln^2\tfrac1\varepsilon}\Bigr)
# $$ (eq-02-width)
#
# has full rank with probability at least $1 - \varepsilon$; the simpler $k \ge \frac{2}{\gamma}\bigl(n + \ln\frac1\varepsilon\bigr)$ is enough for it.
# ```
#
# ```{prf:proof}
# *First inequality.* $T \le S$, and $S > k$ says that $k$ tosses of a coin with success probability $\gamma$ showed fewer than $n$ successes.
#
# *Second.* Let $N$ be the number of these successes. For $u > 0$, Markov's inequality for $e^{-uN}$ gives
# $P[N \le n] \le e^{un}\,\mathbb{E}\,e^{-uN} = e^{un}\bigl(1 - \gamma(1 - e^{-u})\bigr)^k \le e^{un} e^{-k\gamma(1 - e^{-u})}$, by
# $1 - t \le e^{-t}$. The exponent $un - k\gamma(1 - e^{-u})$ is least at $e^{-u} = n/(k\gamma) = 1/\lambda$, which is below one as required,
# and there it equals $n \ln\lambda - k\gamma + n = -n(\lambda - 1 - \ln\lambda)$.
#
# *Third.* With $y = \lambda - 1 > 0$ we need $y - \ln(1 + y) \ge \frac{y^2}{2(1 + y)}$. Both sides vanish at $y = 0$; the derivatives are
# $\frac{y}{1+y}$ on the left and $\frac{y(2 + y)}{2(1 + y)^2}$ on the right, and their difference is $\frac{y^2}{2(1+y)^2} \ge 0$. Finally
# $n y^2/(2(1 + y)) = (k\gamma - n)^2/(2k\gamma)$.
#
# *Width.* Put $\mu = k\gamma$ and $\ell = \ln(1/\varepsilon)$. The last bound is at most $\varepsilon$ if $(\mu - n)^2 \ge 2\mu\ell$, that is
# $\mu^2 - 2\mu(n + \ell) + n^2 \ge 0$. The larger root is $n + \ell + \sqrt{(n + \ell)^2 - n^2}$, and the square root is at most $n + \ell$.
# ```
#
# The first bound in {eq}`eq-02-tail` needs no Chernoff at all and is the one to compute with; the last is the one to remember. {numref}`fig-02-tail` puts
# all three beside simulated tails for three batches of eight samples: *nearly one direction* (independent samples that differ by
# a millionth of their length), *orthogonal*, and a planar *fan* (directions spread evenly over 60°).

# %% tags=["hide-input"]
draws = 10 * parameters.n_trials
options = {"dtype": torch.float64, "device": parameters.device}
fan_angles = torch.linspace(0, math.pi / 3, 8, **options)
tail_batches = {
    "nearly one direction": torch.ones(8, 8, **options) + 1e-6 * torch.eye(8, **options),
    "orthogonal": torch.eye(8, **options),
    "fan over 60°": torch.stack([fan_angles.cos(), fan_angles.sin()], dim=1),
}
tail_times, tails, promises = {}, {}, []
for name, batch in progress(tail_batches.items(), "tails", total=len(tail_batches)):
    rank_by_rank = experiments.fixed_batch_times(batch, draws, generator=run.generator("02", "tail", name))
    times = rank_by_rank[:, -1]
    gamma = gamma_bounds(batch.cpu().numpy()).lower
    tail_times[name] = times
    neurons = np.unique(np.linspace(8, 2.6 * 8 / gamma, 60).astype(int)).tolist()
    bounds = [tail_bounds(8, gamma, k) for k in neurons]
    tails[name] = {
        "gamma": gamma,
        "mean_time_of_rank": rank_by_rank.mean(axis=0),
        "neurons": neurons,
        "measured": [float((times > k).mean()) for k in neurons],
        **{kind: [getattr(bound, kind) for bound in bounds] for kind in ("binomial", "chernoff", "simple")},
    }
    for failure in (0.1, 0.02):
        width = neurons_for_confidence(8, gamma, failure)
        failures = int((times > width).sum())
        lower, upper = experiments.share_interval(failures, draws)
        promises.append(
            {
                "batch": name,
                "gamma": gamma,
                "promised": failure,
                "width": width,
                "failures": failures,
                "draws": draws,
                "failure_lower": lower,
                "failure_upper": upper,
            }
        )
run.record("tail", tails)
run.record("promised_width", promises)
for reached in (4, 6, 7, 8):
    run.glue(f"fan-{reached}", f"tail['fan over 60°']['mean_time_of_rank'][{reached - 1}]")

# %% mystnb={"figure": {"caption": "Probability that full rank takes more than $k$ neurons, for three batches of eight samples: simulated (dots; bars are exact confidence intervals of error $10^{-6}$ on each side) and the three bounds of {eq}`eq-02-tail`. In each panel compare the dots with the binomial curve.", "name": "fig-02-tail"}, "image": {"alt": "Three panels with a logarithmic vertical axis and the number of neurons on the horizontal axis. In each, three falling curves, for the binomial bound, Chernoff's and the simple form, and dots with bars for the simulation."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=3, height=2.7)
for panel, (name, found) in zip(axes[:, 0], tails.items(), strict=True):
    rank_figures.draw_tail(panel, name, found, draws)
axes[0, 0].legend(loc="lower left")
figures.show(figure)

# %% tags=["hide-input"]
figures.table(
    [[p["batch"], p["promised"], p["width"], p["failures"] / p["draws"], p["failure_upper"]] for p in promises],
    header=[
        "batch of eight",
        "allowed failure ε",
        "width by the theorem",
        "share of failures",
        "its upper confidence limit",
    ],
    caption=f"Layers of the width that the theorem asks for, {draws} draws each.",
)
run.judge("theorem-3-high-probability")

# %% [markdown]
# ## Which batches can reach full rank at all
#
# $\gamma(X) > 0$ is a condition on the batch. The paper assumes that no two samples are collinear (the review says columns of $X$; we take them to be the samples). That is more than enough.
#
# ```{prf:theorem} Attainable rank
# :label: thm-02-attainable
# Let $\mathcal{L}$ be the set of lines through the origin that carry a sample, and $\mathcal{L}_{\pm}$ the set of those that carry
# samples on both sides of the origin. With probability one, sufficiently many neurons reach the rank
#
# $$
# r^{*}(X) = \#\mathcal{L} + \dim \operatorname{span} \mathcal{L}_{\pm}
# $$ (eq-02-attainable)
#
# and never a larger one. Hence $\gamma(X) > 0$ if and only if no sample is zero, no two samples are positive multiples of each other, and the lines of the
# antipodal pairs are linearly independent.
# ```
#
# ```{prf:proof}
# Let $K = \{v : f_v = 0 \text{ almost surely}\}$. Every column is orthogonal to $K$, so the rank never exceeds $n - \dim K$. As long as it is
# smaller, some $v \notin K$ is orthogonal to all columns so far; it may be taken orthogonal to $K$, where $P[f_v \ne 0]$ has a positive minimum, and the proof of
# {prf:ref}`thm-02-waiting` applies. So the attainable rank is $n - \dim K$, the dimension of the space of functions
# $w \mapsto \mathrm{ReLU}(w \cdot x_j)$.
#
# By {prf:ref}`lem-02-parity` a function $f_v$ has the even part $\frac12\sum_j v_j\lvert w \cdot x_j\rvert$ and the odd part $\frac12\,w \cdot \sum_j v_j x_j$. Choose
# a vector $y_\ell$ on each line; the samples on it are $c_j y_\ell$ with $c_j$ of either sign. On that line the coefficients enter through
# $u_\ell = \sum_j v_j \lvert c_j\rvert$ (even) and $s_\ell = \sum_j v_j c_j$ (odd):
# $f_v = \frac12 \sum_\ell u_\ell \lvert w \cdot y_\ell\rvert + \frac12\, w \cdot \sum_\ell s_\ell y_\ell$.
#
# The functions $\lvert w \cdot y_\ell\rvert$ are linearly independent, also modulo linear functions: near a point of the hyperplane $w \cdot y_\ell = 0$ that lies on
# no other, all terms but one are linear, and that one has a kink. So $f_v$ determines all $u_\ell$ and the vector $\sum_\ell s_\ell y_\ell$. On a line with
# samples on one side only, $s_\ell = \pm u_\ell$ adds nothing new; on a line with samples on both sides $u_\ell$ and $s_\ell$ are free of each other. The dimension is
# the number of lines plus that of the span of the two-sided $y_\ell$. It equals $n$ if and only if every line has one sample, or two opposite ones, and the latter lines are
# independent.
# ```
#
# Three consequences.
#
# * One antipodal pair, or two on different lines, do no harm. The condition "no two samples are collinear" is sufficient, as the paper says, and not necessary.
# * Three antipodal pairs in the plane, such as $\pm e_1, \pm e_2, \pm(e_1 + e_2)$, stay at rank five of six for ever.
# * A batch of **two** after recentering is an antipodal pair, $\pm\frac12(x_1 - x_2)$. A theorem that excluded antipodal pairs would not cover RC + ReLU at
#   $n = 2$; this one does.
#
# {numref}`fig-02-growth` follows the rank for four batches of six samples. Below it the formula {eq}`eq-02-attainable` is compared with the rank that many neurons reach, for
# batches of small integers in which repeated, opposite, collinear and zero samples are common. Ranks in this chapter are **exact**, up to a coincidence modulo the prime: activations are binary fractions,
# and elimination modulo a large prime involves no tolerance.

# %% tags=["hide-input"]
half = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], **options)
circle_angles = torch.arange(6, **options) * 2 * math.pi / 6 * 0.9
growth_batches = {
    "orthogonal": torch.eye(6, **options),
    "nearly one direction": torch.ones(6, 6, **options) + 1e-6 * torch.eye(6, **options),
    "spread in the plane": torch.stack([circle_angles.cos(), circle_angles.sin()], dim=1),
    "three antipodal pairs": torch.cat([half, -half]),
}
shown_neurons = 24
growth = {}
for name, batch in growth_batches.items():
    times = experiments.fixed_batch_times(
        batch, parameters.n_trials, generator=run.generator("02", "growth", name), max_neurons=3000
    )
    growth[name] = {
        "mean_rank": experiments.mean_rank_curve(times, shown_neurons),
        "share_at_six": float((times[:, 5] >= 0).mean()),
        "share_at_five": float((times[:, 4] >= 0).mean()),
    }
pairs = experiments.fixed_batch_times(
    torch.cat([half[:2], -half[:2]]), parameters.n_trials, generator=run.generator("02", "two-pairs"), max_neurons=3000
)
checked = experiments.attained_ranks(
    min(320, 4 * parameters.n_trials), 3000, generator=run.generator("02", "attainable")
)
run.record("rank_growth", growth)
reached_four = int((pairs[:, 3] >= 0).sum())
pairs_low, pairs_high = experiments.share_interval(reached_four, parameters.n_trials)
run.record(
    "two_pairs",
    {
        "n": 4,
        "share_reached": reached_four / parameters.n_trials,
        "share_lower": pairs_low,
        "share_upper": pairs_high,
        "draws": parameters.n_trials,
    },
)
run.record(
    "attainable",
    {
        "batches": len(checked),
        "agreeing": sum(one["attained"] == one["attainable"] for one in checked),
        "exceeding": sum(one["attained"] > one["attainable"] for one in checked),
        "below_full": sum(one["attainable"] < one["n"] for one in checked),
    },
)
run.glue("checked-batches", "attainable['batches']")
run.glue("checked-agreeing", "attainable['agreeing']")
run.glue("checked-below", "attainable['below_full']")
run.glue("pairs-five", "rank_growth['three antipodal pairs']['share_at_five']")
run.glue("pairs-six", "rank_growth['three antipodal pairs']['share_at_six']")

# %% mystnb={"figure": {"caption": "Mean rank after $k$ neurons, for four batches of six samples. Compare how soon the curves leave the diagonal (one rank per neuron), and their levels at the right.", "name": "fig-02-growth"}, "image": {"alt": "Four rising curves of the mean rank against the number of neurons up to 24. A thin line marks rank six, a dotted one rank five."}} tags=["hide-input"]
figure, axes = figures.new_figure(height=3.4)
after = np.arange(1, shown_neurons + 1)
figures.curves(axes[0, 0], after, [(name, found["mean_rank"]) for name, found in growth.items()])
axes[0, 0].axhline(6, color="#555555", lw=0.8, zorder=1)
axes[0, 0].axhline(5, color="#555555", lw=0.8, ls=":", zorder=1)
axes[0, 0].set(xlabel="neurons k", ylabel="mean rank", ylim=(0, 6.3), xlim=(0, shown_neurons + 0.5))
figures.show(figure)

# %% [markdown]
# Of {glue:text}`checked-batches:d` degenerate integer batches, {glue:text}`checked-below:d` cannot reach full rank by the formula; formula and simulation agree for
# {glue:text}`checked-agreeing:d`. A rank above the formula's would refute it; one below it would only say that more neurons were needed. Within 3000 neurons the three antipodal pairs came to rank five in a share of {glue:text}`pairs-five:.3f` of the draws, to rank six in a share of
# {glue:text}`pairs-six:.3f`.

# %% tags=["hide-input"]
run.judge("rank-attainable", "rank-collinearity-necessary")

# %% [markdown]
# ### The same direction, the opposite direction
#
# Two samples at a small angle, and two at almost $180°$, are equally "nearly collinear", and the theorem treats them quite differently. Two samples at the angle $\theta$ need a number of neurons that is known
# exactly ({ref}`ex-02-two`): it tends to four as $\theta \to 0$ and to three as $\theta \to 180°$. **At** $\theta = 0$ rank two is never reached: the limit from above says nothing, since neurons that see one
# sample alone become rare, yet a neuron that sees both still raises the rank as long as $\theta > 0$. **At** $\theta = 180°$ nothing breaks: the columns are multiples of $e_1$ or of $e_2$, each with probability one half. So a pair
# in the same direction is fatal, a pair in opposite directions is the best there is, and only *several* opposite pairs on dependent lines do harm.

# %% tags=["hide-input"]
collinear_batches = {
    "two samples at 90°": [[1, 0], [0, 1]],
    "one direction twice": [[1, 0], [2, 0]],
    "opposite directions": [[1, 0], [-2, 0]],
    "one direction twice, and a third sample": [[1, 0], [2, 0], [0, 1]],
    "one opposite pair, and a third sample": [[1, 0], [-2, 0], [0, 1]],
    "two opposite pairs": [[1, 0], [-1, 0], [0, 1], [0, -1]],
    "two opposite pairs, and a fifth sample": [[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1]],
    "three opposite pairs": [[1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1]],
    "a zero sample": [[1, 0], [0, 1], [0, 0]],
}
collinear = []
for name, rows in collinear_batches.items():
    batch = torch.tensor(rows, **options)
    reached = attainable_rank(batch.cpu().numpy())
    times = experiments.fixed_batch_times(
        batch, parameters.n_trials, generator=run.generator("02", "collinear", name), max_neurons=1000
    )
    at_rank = times[:, reached - 1]
    mean, error = experiments.mean_and_error(at_rank)
    collinear.append(
        {
            "batch": name,
            "n": len(rows),
            "attainable": reached,
            "gamma": gamma_planar(batch.cpu().numpy()).gamma,
            "share_attained": float((at_rank >= 0).mean()),
            "share_beyond": float((times[:, reached:] >= 0).any(axis=1).mean()),
            "mean": mean,
            "standard_error": error,
        }
    )
run.record("collinear", collinear)
figures.table(
    [
        [c["batch"], c["n"], c["attainable"], c["gamma"], plus_minus(c["mean"], c["standard_error"]), c["share_beyond"]]
        for c in collinear
    ],
    header=["samples in the plane", "n", "attainable rank", "γ", "neurons until that rank", "share that went beyond"],
    caption=f"Collinear samples: {parameters.n_trials} draws of up to 1000 neurons a row; the attainable rank is by the "
    "formula, γ by the exact algorithm of the next section.",
)

# %% [markdown]
# ## The constant in the plane, exactly
#
# For samples in the plane $\gamma(X)$ can be computed for any batch size, by a walk round the circle of {numref}`fig-02-circle`. Suppose that no two samples are collinear
# (the library also treats antipodal pairs), and look at a $v \ne 0$ with $m = 0$.
#
# Order the $n$ lines $w \cdot x_j = 0$ along half a turn, and orient the samples along the walk: $y_j = \epsilon_j x_j$, $\epsilon_j = \pm1$, so that crossing the $j$-th
# line goes from $w \cdot y_j > 0$ to $w \cdot y_j < 0$. A sample with $\epsilon_j = 1$ is switched off there, one with $\epsilon_j = -1$ is switched on. Since $f_v$ is even, it has
# on each sector the slope $g = \frac12\sum_j \pm v_j y_j$, and crossing line $j$ changes $g$ by $-v_j y_j$.
#
# ```{prf:theorem} $\gamma$ in the plane
# :label: thm-02-plane
# Call a run of consecutive lines *closed* for $v$ if $\sum v_j y_j = 0$ over it. Then $\gamma(X)$ is the smaller of $\frac12$ and the least total angle, divided by $\pi$, of
# disjoint runs of one of these four kinds:
#
# 1. one run that contains three samples with the same $\epsilon$ (five lines always do),
# 2. a run of four lines with two samples of each sign, and a second such run (never cheaper than kind 3: leave out an end line of the second run),
# 3. a run of four lines with two samples of each sign, and a run of three lines,
# 4. three runs of three lines.
#
# (Runs are taken round the circle; moving the start of the half turn past a run flips all its $\epsilon_j$ and $y_j$ together, which changes none of the four kinds.)
# ```
#
# ```{prf:proof}
# *Silent sectors cut the walk into closed runs.* Let $g = 0$ on some sector (otherwise the probability is one). By evenness $g = 0$ on the opposite sector; start the half turn
# there. Between two consecutive silent sectors the changes of $g$ add up to zero: the lines between them form a closed run. $f_v \ne 0$ exactly on the angles spanned by the runs
# with some $v_j \ne 0$. Two different directions are independent, so such a run has at least three lines with $v_j \ne 0$.
#
# *The condition $m = 0$.* Closed runs give $\sum_j v_j y_j = 0$. Together with $m = \sum_j \epsilon_j v_j y_j = 0$ this says
# $\sum_{\epsilon_j = -1} v_j y_j = 0$: two more equations, over all runs together.
#
# *Counting.* A closed run of $k$ lines has $k - 2$ free coefficients. If three of its samples have the same sign, a combination of these three alone is closed and meets
# $m = 0$ (its samples with $\epsilon = -1$ are all or none of it): kind 1. Otherwise it has at most two of each sign, so $k \le 4$. For $(2,2)$ the vector
# $z = \sum_{\epsilon_j = -1} v_j y_j$ over the run can be any vector of the plane, and determines the coefficients. For $(2,1)$ or $(1,2)$, $z$ runs over the line spanned
# by the sample that is alone with its sign, and again determines the coefficients. We need disjoint runs whose $z$ add up to zero, not all zero. Two of them can do it if their
# ranges of $z$ meet outside zero: a plane with anything (kinds 2 and 3), two lines never, since different samples are not collinear. Three lines in a plane always can (kind 4).
# Conversely, every $v$ with $m = 0$ uses runs that contain one of these kinds, so none is cheaper.
# ```
#
# The minimum over these arcs takes a time polynomial in $n$; angles come from exact cross products. The tests of the library compare it with an enumeration, in exact arithmetic,
# of all sets of sectors on which some $f_v$ can vanish, and for every batch the minimizer $v$ is computed as a vector of rationals, whose probability is then evaluated
# independently.
#
# ### Small angles
#
# Three samples within a small angle $\delta$ form a run of kind 1: $\gamma \le \delta/\pi$, however many other samples there are, with equality if there are no others (and $\delta \le \pi/2$). {numref}`fig-02-angles` shows the number of neurons for three
# samples at $0$, $\delta/2$ and $\delta$.

# %% tags=["hide-input"]
small_angles = []
for opening in progress([1.0, 0.3, 0.1, 0.03, 0.01, 0.003], "small angles"):
    angles = torch.linspace(0, opening, 3, **options)
    batch = torch.stack([angles.cos(), angles.sin()], dim=1)
    times = experiments.fixed_batch_times(
        batch, parameters.n_trials, generator=run.generator("02", "opening", repr(opening))
    )[:, -1]
    gamma = gamma_planar(batch.cpu().numpy()).gamma
    mean, error = experiments.mean_and_error(times)
    small_angles.append(
        {
            "opening_rad": opening,
            "gamma": gamma,
            "mean": mean,
            "standard_error": error,
            "bound": 3 / gamma,
            "lower_bound": 1 / gamma,
        }
    )
run.record("small_angles", small_angles)
run.glue("smallest-opening", "min(c['opening_rad'] for c in small_angles)")
run.glue("smallest-ratio", "min(c['mean'] * c['gamma'] for c in small_angles if c['opening_rad'] < 0.005)")

# %% mystnb={"figure": {"caption": "Three samples in the plane at angles $0$, $\\delta/2$, $\\delta$: mean number of neurons until rank three (dots, bars are five standard errors), the bound $3/\\gamma$ and the lower bound $1/\\gamma$. Look at which of the two lines the dots approach as $\\delta$ becomes small.", "name": "fig-02-angles"}, "image": {"alt": "A double logarithmic plot of the mean number of neurons against the opening angle in radians. Two parallel falling lines are the upper bound three over gamma and the lower bound one over gamma; dots with bars are the simulation."}} tags=["hide-input"]
figure, axes = figures.new_figure(height=3.2)
rank_figures.draw_waiting_times(
    axes[0, 0],
    [cell["opening_rad"] for cell in small_angles],
    small_angles,
    [
        ("upper bound 3/γ", [cell["bound"] for cell in small_angles]),
        ("lower bound 1/γ", [cell["lower_bound"] for cell in small_angles]),
    ],
)
axes[0, 0].set_xlabel("opening δ (radians)")
figures.show(figure)

# %% [markdown]
# At the smallest opening, {glue:text}`smallest-opening:.3f`, the mean is {glue:text}`smallest-ratio:.2f` times $1/\gamma$. The reason is easy to see: most neurons see all three samples
# or none, and these give rank two only; the third rank has to wait for the one narrow pair of sectors.
#
# ## Bounds in any dimension
#
# In higher dimension we know no polynomial algorithm for $\gamma$. Two lower bounds are certain and cheap. Let $\varsigma$ (the *spark*) be the size of the smallest linearly dependent set of
# lines of samples: at least three if no two samples share a line, and $d_0 + 1$ in general position, which for Gaussian samples holds almost surely.
#
# ```{prf:theorem} Two lower bounds
# :label: thm-02-bounds
# Let $\gamma(X) > 0$ and let $\theta_{jk}$ be the angle between $x_j$ and $x_k$.
#
# *Counting.* With one sample per line,
#
# $$
# \begin{aligned}
# \gamma(X) &\ge \min_j \int_0^\infty \varphi(s)\,\max\Bigl(0,\; 1 - \frac{M_j(s)}{\varsigma - 1}\Bigr)\,ds, \\
# M_j(s) &= \sum_{k \ne j} \operatorname{erf}\frac{s\,\lvert\cot\theta_{jk}\rvert}{\sqrt2},
# \qquad \varphi(s) = \frac{e^{-s^2/2}}{\sqrt{2\pi}} .
# \end{aligned}
# $$ (eq-02-counting)
#
# *Acute sets.* If no two samples are collinear and $n \le 2\varsigma - 1$, let $t$ be the smallest angle for which $\varsigma$ samples are pairwise within $t$. Then
# $\gamma(X) \ge \min(\frac12, t/\pi)$. In particular, if no $\varsigma$ samples are pairwise at acute angles, $\gamma(X) = \frac12$ exactly.
# ```
#
# ```{prf:proof}
# Take $v \ne 0$ with $m = 0$ (otherwise the probability is at least $\frac12$) and write $f_v = \frac12\sum_\ell u_\ell\lvert w\cdot y_\ell\rvert$ with one vector per line; not all
# $u_\ell$ vanish, since $f_v \not\equiv 0$.
#
# *Runs again.* If $f_v$ vanishes on two different cones, let $D$ be the set of lines with $u_\ell \ne 0$ whose hyperplanes separate them. Subtracting the slopes gives
# $\sum_{\ell \in D} \pm u_\ell y_\ell = 0$. So $D$ is empty or has at least $\varsigma$ lines.
#
# *Counting.* Choose $j$ with $u_j \ne 0$ and write $w = t\,x_j/\lvert x_j\rvert + w_\perp$, where $t$ is standard normal and independent of $w_\perp$. Along the line in $t$, hyperplane $k$ is crossed at
# $t_k$ with $\lvert t_k\rvert = \lvert z_k\tan\theta_{jk}\rvert$, $z_k$ standard normal, and hyperplane $j$ at $0$. Let $N_s$ be the number of $k \ne j$ with $\lvert t_k\rvert < s$, and
# suppose $N_s \le \varsigma - 2$. The kink at $0$ lies inside or at the end of a stretch on which $f_v \ne 0$. If the stretch ended on both sides inside $(-s, s)$, the two silent cones at its ends would be separated
# by $j$ and at most $\varsigma - 2$ others, too few. So it covers $(0, s)$ or $(-s, 0)$: given $w_\perp$, the probability of
# $f_v \ne 0$ is at least $\Phi(s) - \frac12$. Taking the largest such $s$ and integrating, $P[f_v \ne 0] \ge \int_0^\infty \varphi(s)\,P[N_s \le \varsigma - 2]\,ds$, and Markov's inequality
# $P[N_s \ge \varsigma - 1] \le \mathbb{E} N_s/(\varsigma - 1)$, where $\mathbb{E} N_s = M_j(s)$, gives {eq}`eq-02-counting`.
#
# *Acute sets.* On a cone where $f_v$ vanishes, $\sum_{\text{active}} v_j x_j = 0$, and with $m = 0$ also $\sum_{\text{silent}} v_j x_j = 0$. Each of the two parts of the support of $v$ is empty or has at
# least $\varsigma$ samples; both is too many. So $f_v = 0$ only where all samples of the support are active, or none. Two of them at the angle $\theta$ are on the same side of $w$ with probability
# $1 - \theta/\pi$, so $P[f_v \ne 0] \ge \theta/\pi$. Since $m = 0$, the support is dependent and has at least $\varsigma$ samples, and any $\varsigma$ samples contain two that are at least $t$ apart.
# ```
#
# The integrand's maximum is a convex function of $s$, so Jensen's inequality, applied on each cell of a grid, turns the numerical integral itself into a lower bound. The second bound can only help for Gaussian batches with
# $n \le 2d_0 + 1$, and there it may give $\gamma = \frac12$ on the spot: the table below says how $\gamma$ was obtained.
#
# ## Measurement
#
# Each draw has a fresh Gaussian batch of dimension {glue:text}`main-dim:d` and fresh weights, and every drawn batch has a $\gamma(X)$ of its own, or a certified lower bound of it. Given its
# batch, a draw's expectation is at most $n/\gamma(X)$. The honest partner of the mean number of neurons is therefore **the mean of $n/\gamma(X)$ over the same batches**; one $\gamma$ for all
# would be wrong. Where $\gamma$ is only known to lie between two certified bounds, the theorem is refuted if the measurement exceeds what the lower bound of $\gamma$ allows, and confirmed only if it stays
# below what the upper bound allows. The same is measured in the plane, where $\gamma$ is exact for every $n$.

# %% tags=["hide-input"]
planar_sizes = [n for n in parameters.batch_sizes if n <= 64] or [64]
main = [
    experiments.gaussian_waiting_times(
        n, parameters.input_dim, parameters.n_trials, generator=run.generator("02", "gaussian", n, parameters.input_dim)
    )
    for n in progress(parameters.batch_sizes, "batch sizes")
]
planar = [
    experiments.gaussian_waiting_times(n, 2, parameters.n_trials, generator=run.generator("02", "plane", n))
    for n in progress(planar_sizes, "planar batch sizes")
]
run.record("neurons_to_full_rank", [found.cell() for found in main])
run.record("neurons_planar", [found.cell() for found in planar])
run.record("shares", [found.share() for found in main])
run.record("shares_planar", [found.share() for found in planar])
run.record("main", {"n": max(parameters.batch_sizes), "input_dim": parameters.input_dim, "draws": parameters.n_trials})
largest = parameters.batch_sizes.index(max(parameters.batch_sizes))
largest_planar = planar_sizes.index(max(planar_sizes))
run.glue("main-dim", "main['input_dim']")
run.glue("main-n", "main['n']")
run.glue("main-mean", f"neurons_to_full_rank[{largest}]['mean']")
run.glue("main-bound", f"neurons_to_full_rank[{largest}]['bound']")
run.glue("bound-at-least", f"neurons_to_full_rank[{largest}]['bound_at_least']")
run.glue("planar-n", f"neurons_planar[{largest_planar}]['n']")
run.glue("planar-mean", f"neurons_planar[{largest_planar}]['mean']")
run.glue("planar-bound", f"neurons_planar[{largest_planar}]['bound']")

# %% tags=["hide-input"]
cells = run.values["neurons_to_full_rank"] + run.values["neurons_planar"]
shares = run.values["shares"] + run.values["shares_planar"]
figures.table(
    [
        [
            c["input_dim"],
            c["n"],
            plus_minus(c["mean"], c["standard_error"]),
            c["bound_at_least"],
            c["bound"],
            c["bound_kind"],
            plus_minus(s["share_at_most"], s["share_at_most_error"]),
        ]
        for c, s in zip(cells, shares, strict=True)
    ],
    header=["dimension", "n", "neurons T", "n/γ at least", "n/γ at most", "γ is", "T·γ/n at most"],
    caption=f"Neurons until full rank: means over {parameters.n_trials} draws a row, each with a fresh batch and fresh "
    "weights, ± one standard error.",
)
run.judge("theorem-3-expected-neurons")

# %% mystnb={"figure": {"caption": "Neurons until full rank against the batch size: mean over draws (dots, bars are five standard errors), mean over the same batches of the bound $n/\\gamma(X)$, with $\\gamma$'s certified lower bound where $\\gamma$ is not known (squares), and the least possible number $n$ (triangles). Above: the chapter's input dimension. Below: samples in the plane, with the mean of $1/\\gamma$ as well (diamonds). Look at the gap between the simulation and the bound, and how it changes with $n$.", "name": "fig-02-sizes"}, "image": {"alt": "Two double logarithmic panels of neurons against batch size. Each panel has round dots for the simulation, with bars, and a line each for the bound and for n; the lower panel, for dimension two, has a further line for the mean of one over gamma."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, height=3.1)
for panel, found, title in [
    (axes[0, 0], run.values["neurons_to_full_rank"], f"dimension {parameters.input_dim}"),
    (axes[1, 0], run.values["neurons_planar"], "dimension 2"),
]:
    sizes = [c["n"] for c in found]
    lines = [("bound, mean of n/γ", [c["bound"] for c in found]), ("n", sizes)]
    if found is run.values["neurons_planar"]:
        lines.append(("mean of 1/γ", [c["bound"] / c["n"] for c in found]))
    rank_figures.draw_waiting_times(panel, sizes, found, lines)
    panel.set(xlabel="batch size n", title=title)
    rank_figures.name_ticks(panel, sizes)
figures.show(figure)

# %% [markdown]
# **A warning about the planar standard errors.** Three random directions lie on one side within an angle $\pi\epsilon$ with probability $\frac34\epsilon^2$, exactly, for
# $\epsilon \le \frac12$. Hence for $n$ Gaussian samples and small $\epsilon$
#
# $$
# P[\gamma(X) < \epsilon] \approx 1 - \exp\Bigl(-\tfrac34\tbinom n3\epsilon^2\Bigr),
# $$ (eq-02-law)
#
# so a typical $\gamma$ is of order $n^{-3/2}$, and the expectation of $\gamma^{-2}$ is infinite, though only logarithmically. Since $\mathbb{E}[T^2 \mid X] \ge
# \gamma(X)^{-2}$, the number of neurons $T$ of a fresh planar batch has a finite mean and an **infinite variance**. The sample variance behind its standard error
# estimates something that does not exist: it grows slowly with the number of draws, and means scatter more than the error says. The ratio $T\gamma(X)/n$, in the last column of the table, has no such tail: the theorem says that its mean is at most one, batch by batch, and the
# criterion uses it too. {numref}`fig-02-law` compares {eq}`eq-02-law` with the drawn batches.

# %% tags=["hide-input"]
run.record(
    "gamma_law",
    {
        found.n: {
            "median": float(np.median(found.gamma_lower)),
            "median_predicted": min(0.5, math.sqrt(math.log(2) / (0.75 * math.comb(found.n, 3)))),
        }
        for found in planar
        if found.n >= 3
    },
)

# %% mystnb={"figure": {"caption": "Distribution of $\\gamma(X)$ for Gaussian samples in the plane: share of the drawn batches with $\\gamma$ below a level (steps), and the approximation {eq}`eq-02-law` (thin lines). Compare the lower ends, where the approximation is meant to hold.", "name": "fig-02-law"}, "image": {"alt": "Cumulative distribution curves of gamma on a logarithmic axis, one for each batch size, as steps, each with a thin smooth line for the approximation."}} tags=["hide-input"]
figure, axes = figures.new_figure(height=3.2)
rank_figures.draw_gamma_law(axes[0, 0], {found.n: found.gamma_lower for found in planar if found.n >= 3})
figures.show(figure)

# %% [markdown]
# ## How tight is the bound?
#
# **Independent samples.** The bound is $2n$. It cannot be improved without looking at the batch: if the samples are independent but nearly of one direction, almost every neuron sees all of them
# or none, each with probability one half. A neuron that sees all gives the column $Xw$, which raises the rank with probability one. So $T$ tends to the wait for the $n$-th head of a fair coin, with mean $2n$, and even the
# binomial tail of {eq}`eq-02-tail` becomes an equality. For orthogonal samples, on the other hand, few neurons are wasted.
#
# ```{prf:proposition} Orthogonal samples
# :label: prop-02-orthogonal
# If the samples are orthogonal and not zero, $\mathbb{E}\,T \le \sum_{k=1}^{n} \frac{1}{1 - 2^{-k}} < n + 1.607$.
# ```
#
# ```{prf:proof}
# While the rank is $n - k$, the vectors orthogonal to all columns form a space $V$ of dimension $k$. Given the past, a neuron fails to raise the rank if $f_v(w) = 0$ for all $v \in V$. The values
# $w \cdot x_j$ are independent and symmetric. On a cone with the set $A$ of active samples, $f_v = 0$ for all $v \in V$ means $\sum_{j \in A} v_j x_j = 0$, so $v_j = 0$ for all $j \in A$ and $v \in V$: all samples in the union of the supports
# of $V$ are silent. That union has at least $k$ elements, so a failure has probability at most $2^{-k}$. Sum the waiting times; $\frac{1}{1 - 2^{-k}} = 1 + \frac{1}{2^k - 1}$, and $\sum_k \frac{1}{2^k - 1} = 1.6066\ldots$ (the constant of Erdős and Borwein).
# ```

# %% tags=["hide-input"]
independent = []
for n in progress([2, 4, 8, 16], "independent samples"):
    for name, batch in [
        ("orthogonal", torch.eye(n, **options)),
        ("nearly one direction", torch.ones(n, n, **options) + 1e-6 * torch.eye(n, **options)),
    ]:
        times = experiments.fixed_batch_times(batch, draws, generator=run.generator("02", "independent", name, n))[
            :, -1
        ]
        mean, error = experiments.mean_and_error(times)
        gamma = gamma_bounds(batch.cpu().numpy())
        independent.append(
            {
                "batch": name,
                "n": n,
                "draws": draws,
                "mean": mean,
                "standard_error": error,
                "gamma": gamma.lower,
                "bound": n / gamma.lower,
                "orthogonal_bound": orthogonal_neurons_bound(n),
            }
        )
run.record("independent", independent)
figures.table(
    [
        [c["batch"], c["n"], plus_minus(c["mean"], c["standard_error"]), c["bound"], c["orthogonal_bound"]]
        for c in independent
    ],
    header=["samples", "n", "neurons T", "bound 2n", "bound for orthogonal samples"],
    caption=f"Two kinds of linearly independent samples: means over {draws} draws a row, ± one standard error.",
)
run.judge("rank-bound-sharp", "rank-orthogonal-samples")

# %% [markdown]
# **Samples in the plane.** The theorem places the mean of $T\gamma$ between one and $n$; measured, it is {glue:text}`over-first:.2f` for {glue:text}`over-first-n:d` samples and
# {glue:text}`over-last:.2f` for {glue:text}`over-last-n:d`. The proof of the upper bound pays $1/\gamma$ for **every** rank; the wait for an early rank is shorter, since most directions are easier to see than the minimizer ({ref}`ex-02-last`). We have no proof that
# $\mathbb{E}[T\gamma]$ stays bounded in the plane, and leave it open; the criterion below asks for a factor of three.

# %% tags=["hide-input"]
tested = [index for index, one in enumerate(run.values["shares_planar"]) if one["n"] >= 8] or [0]
for name, index in (("over-first", tested[0]), ("over-last", tested[-1])):
    run.glue(name, f"shares_planar[{index}]['over_lower_bound']")
    run.glue(f"{name}-n", f"shares_planar[{index}]['n']")
run.judge("rank-planar-factor")

# %% [markdown]
# **From the plane to high dimension.** The next table keeps the batch size and raises the dimension. Three regimes follow from the theory: in the plane $\gamma$ is of order $n^{-3/2}$; from $2d_0 + 1 \ge n$ on it is one half for most Gaussian batches, by
# acute sets, and from $d_0 \ge n$ on for all of them. In between $\gamma$ lies in a bracket, and the table says how wide it is: where the two columns of $n/\gamma$ differ, the true bound is somewhere between them.

# %% tags=["hide-input"]
sweep_n = 16 if 16 in parameters.batch_sizes else max(parameters.batch_sizes)
sweep = []
for dimension in progress([2, 3, 4, 6, 8, 12, 16], "dimensions"):
    source = run.generator("02", "dimension", dimension)
    found = experiments.gaussian_waiting_times(sweep_n, dimension, parameters.n_trials, generator=source)
    sweep.append(found.cell() | found.share())
run.record("dimension_sweep", sweep)
run.glue("sweep-n", "dimension_sweep[0]['n']")
run.glue("sweep-two", "dimension_sweep[0]['mean']")
run.glue("sweep-three", "dimension_sweep[1]['mean']")
figures.table(
    [
        [
            c["input_dim"],
            plus_minus(c["mean"], c["standard_error"]),
            c["bound_at_least"],
            c["bound"],
            c["median_gamma"],
            c["median_gamma_upper"],
            plus_minus(c["share_of_bound"], c["share_error"]),
            plus_minus(c["share_at_most"], c["share_at_most_error"]),
        ]
        for c in sweep
    ],
    header=[
        "dimension",
        "neurons T",
        "n/γ at least",
        "n/γ at most",
        "γ at least (median)",
        "γ at most (median)",
        "T·γ/n at least",
        "T·γ/n at most",
    ],
    caption=f"Tightness over the input dimension, {sweep_n} Gaussian samples, {parameters.n_trials} draws a row, ± one standard error.",
)

# %% [markdown]
# In the plane {glue:text}`sweep-n:d` samples needed {glue:text}`sweep-two:.1f` neurons on average, in three dimensions {glue:text}`sweep-three:.2f`. A minimizer $v$ exists in three dimensions too, and it is as hard to see as the columns of $\gamma$ say; but the
# neurons need not look for it: a mean close to $n$ says that the first $n$ columns are independent in most draws. The bound is about the worst direction, the process about a typical one.
#
# **Nearly one direction.** Near-collinearity makes both bound and waiting time large, if and only if there are more samples than dimensions.
#
# ```{prf:proposition} Samples in a narrow cone
# :label: prop-02-cone
# Let $x_j(\delta) = e_1 + \delta z_j$, $j = 1, \dots, n$, with fixed $z_j \in \mathbb{R}^{d_0}$ whose parts orthogonal to $e_1$ are all different, and $\delta \to 0$.
#
# 1. If the $x_j(\delta)$ are linearly independent, $\gamma = \frac12$ and $\mathbb{E}\,T \le 2n$, however small $\delta$ is.
# 2. If $n > d_0$, there are constants $0 < c < C$ with $c\,\delta \le \gamma \le C\,\delta$ for small $\delta$; hence $\mathbb{E}\,T$ is at least $1/(C\delta)$ and at most $n/(c\,\delta)$.
# ```
#
# ```{prf:proof}
# 1. is {prf:ref}`prop-02-half`. 2., above: more than $d_0$ vectors are dependent, so some $v \ne 0$ has $\sum_j v_j x_j = 0$, and $f_v(w) = 0$ wherever all samples are active or all are silent. The
# samples are not all on one side of $w$ with probability at most $\sum_{j \ge 2} \theta_{1j}/\pi$, and $\theta_{jk} \le C_{jk}\delta$. 2., below: by hypothesis $\theta_{jk} \ge a_{jk}\delta$ for small $\delta$, with $a_{jk} > 0$; in
# particular no two samples are collinear, and (for small $\delta$) none are antipodal, so {prf:ref}`thm-02-bounds` holds with $\varsigma \ge 3$. Since $\cot\theta \le 1/\theta$, $M_j(s) \le \sum_{k \ne j}\operatorname{erf}\frac{s}{\sqrt2\,a_{jk}\delta}$; substitute
# $s = \delta t$ in {eq}`eq-02-counting`: the integral is at least $\delta \int_0^{1/\delta} \varphi(\delta t)\max\bigl(0, 1 - \frac12\sum_{k\ne j}\operatorname{erf}\frac{t}{\sqrt2\,a_{jk}}\bigr)dt$, where $\varphi(\delta t) \ge \varphi(1)$ and the maximum is positive near $t = 0$: a positive
# multiple of $\delta$.
# ```
#
# {numref}`fig-02-cone` shows the law for one batch of {glue:text}`cone-n:d` samples in three and in eight dimensions (fresh weights only, the $z_j$ stay).

# %% tags=["hide-input"]
cone_openings = [1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001]
cones = {
    dimension: experiments.near_collinear_cells(
        12, dimension, cone_openings, parameters.n_trials, generator=run.generator("02", "cone", dimension)
    )
    for dimension in progress([3, 8], "cones")
}
run.record("near_collinear", [cell for found in cones.values() for cell in found])
slopes = {dimension: experiments.log_log_slope([found[3], found[-1]]) for dimension, found in cones.items()}
run.record(
    "near_collinear_slopes",
    [{"input_dim": dimension, "slope": one, "slope_error": error} for dimension, (one, error) in slopes.items()],
)
run.record("near_collinear_draws", parameters.n_trials)
run.glue("cone-n", "near_collinear[0]['n']")
run.glue("cone-slope-3", "near_collinear_slopes[0]['slope']")
run.glue("cone-slope-3-error", "near_collinear_slopes[0]['slope_error']")
run.glue("cone-slope-8", "near_collinear_slopes[1]['slope']")
run.glue("cone-slope-8-error", "near_collinear_slopes[1]['slope_error']")

# %% mystnb={"figure": {"caption": "Twelve samples $e_1 + \\delta z_j$ in three dimensions (above) and in eight (below): mean number of neurons until full rank (dots, bars are five standard errors) against $\\delta$, between $1/\\gamma$ with the certified upper bound of $\\gamma$ and $n/\\gamma$ with the certified lower bound. Compare the slopes at the left with $-1$.", "name": "fig-02-cone"}, "image": {"alt": "Two double logarithmic panels of the number of neurons against the opening delta, from 0.001 to 1. In each, dots with bars for the simulation and two lines, for the upper and the lower bound."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, height=2.9)
for panel, (dimension, found) in zip(axes[:, 0], cones.items(), strict=True):
    rank_figures.draw_waiting_times(
        panel,
        cone_openings,
        found,
        [
            ("n / lower bound of γ", [c["n"] / c["gamma_lower"] for c in found]),
            ("1 / upper bound of γ", [1 / c["gamma_upper"] for c in found]),
        ],
    )
    panel.set(xlabel="opening δ", title=f"dimension {dimension}")
figures.show(figure)

# %% [markdown]
# The slope between $\delta = 0.03$ and $0.001$ is {glue:text}`cone-slope-3:.3f` ± {glue:text}`cone-slope-3-error:.3f` in three dimensions and {glue:text}`cone-slope-8:.3f` ± {glue:text}`cone-slope-8-error:.3f` in eight.

# %% tags=["hide-input"]
run.judge("rank-near-collinear-law")

# %% [markdown]
# ## Exact rank and the rank that a computer sees
#
# The theorem is about rank in exact arithmetic. A rank computed in floating point counts the singular values above some tolerance, and depends on it. The table below takes one layer of width 128 on Gaussian batches of
# 16 samples and counts the singular values above a share of the largest one. The last column is the share of layers that have full rank exactly, from {glue:text}`numeric-draws:d` draws of $T$ of the same law.

# %% tags=["hide-input"]
numeric_draws = min(200, parameters.n_trials)
numeric = []
for dimension in (2, 4, 16):
    source = run.generator("02", "numerical", dimension)
    batches = torch.randn(numeric_draws, 16, dimension, generator=source, **options)
    weights = torch.randn(numeric_draws, dimension, 128, generator=source, **options)
    activity = layers.relu(batches @ weights)
    exact = rank_times(batches, generator=source)[:, -1]
    numeric.append(
        {
            "input_dim": dimension,
            "numerical_rank": {
                tolerance: float(geometry.numerical_rank(activity, tolerance).double().mean())
                for tolerance in (1e-1, 1e-2, 1e-3, 1e-6)
            },
            "share_full_exactly": float((exact <= 128).double().mean()),
        }
    )
run.record("numerical_rank", {"n": 16, "width": 128, "draws": numeric_draws, "cells": numeric})
run.glue("numeric-draws", "numerical_rank['draws']")
figures.table(
    [[c["input_dim"], *c["numerical_rank"].values(), c["share_full_exactly"]] for c in numeric],
    header=["dimension", "rank at 0.1", "rank at 0.01", "rank at 0.001", "rank at 1e-6", "full rank exactly (share)"],
    caption="Mean numerical rank of one ReLU layer of width 128 on 16 Gaussian samples, by relative tolerance.",
)

# %% [markdown]
# Full rank in the sense of the theorem is a weak statement about a representation: it says that no direction is lost entirely, not that all can be told apart. Whoever quotes a rank should quote its tolerance.
#
# **Digits.** A batch of handwritten digits has far fewer dimensions than samples. {glue:text}`lift-draws:d` batches of {glue:text}`lift-n:d` digits, of input rank at most {glue:text}`lift-input:d`, were lifted to
# full rank by {glue:text}`lift-mean:.2f` neurons on average, and by {glue:text}`lift-largest:d` at most.

# %% tags=["hide-input"]
digits = rank_training.standardized_digits(parameters.device)
lifted = experiments.lifted_batches(
    digits.train_x,
    parameters.training_batch,
    2 * parameters.training_batch,
    min(100, parameters.n_trials),
    generator=run.generator("02", "digits"),
)
run.record("lifted_digits", lifted)
run.glue("lift-draws", "lifted_digits['draws']")
run.glue("lift-n", "lifted_digits['n']")
run.glue("lift-input", "lifted_digits['input_rank_max']")
run.glue("lift-mean", "lifted_digits['mean']")
run.glue("lift-largest", "lifted_digits['largest']")
run.judge("review-single-layer-lifts")

# %% [markdown]
# ## Does low rank at initialization prevent training? Figure 2 on digits
#
# The essay's account of the paper's Figure 2: with the setting of Daneshmand et al. {cite}`daneshmand2020`, but He's initialization in place of PyTorch's default, "networks without batch normalization can achieve high training
# accuracy even when the rank of the last hidden layer collapses to a small fraction of its maximum value". The review draws the conclusion from the theorem instead: one random layer repairs the rank, so low rank "does not by itself block training".
#
# **What is ours.** The sources give no data set, learning rate, tolerance or depth. We take:
#
# * scikit-learn's digits; of every seven samples the first four train ({glue:text}`train-samples:d`), the last three test ({glue:text}`test-samples:d`); each pixel's training mean is subtracted and one number, the standard deviation over all pixels,
#   divides everything (the data set is the test part of a larger collection: thirteen writers, who are not named sample by sample; the split goes by the number of the sample, so the same hands may be
#   in both parts, and the test accuracy says nothing about a new writer);
# * fully connected networks of width {glue:text}`two-width:d`, ReLU, ten outputs, cross entropy; plain SGD without momentum or weight decay, batches of {glue:text}`two-batch:d`, {glue:text}`two-epochs:d` epochs, {glue:text}`two-networks:d` networks a cell;
# * three configurations: **PyTorch default**, the initial law of `nn.Linear`, weights and biases uniform on $(-1/\sqrt{d}, 1/\sqrt{d})$ for $d$ inputs (variance $1/(3d)$); **He**, weights normal with variance $2/d$, biases zero; **batch norm**, the default's law, with batch norm
#   (statistics of the batch, learned gain and shift, $\epsilon = 10^{-5}$) before every ReLU. Accuracies with batch norm use the statistics of the training set;
# * the learning rate by a rule, anew for every configuration and depth: {glue:text}`two-search-networks:d` further networks are trained at every rate of the grid, from the same starts and on the same batches, and after {glue:text}`two-rounds` epochs
#   the worse half of the rates still in the race is dropped (of an odd number the middle one stays; the last time all but the best). A rate is better if its loss is less: the mean over the networks and over the batches of the last epoch. A rate at which one of the networks diverged comes last. The table below says where the choice fell on an end of the grid,
#   so that a rate beyond it might have been better still. A network that diverges in the training itself counts as accuracy zero and is reported;
# * *near-perfect* is a training accuracy of 0.99 or more, and *most networks* means more than one half of all networks that could be drawn: the number that reached it gives an exact interval for that share (Clopper and Pearson, error 0.05 on each side), and the verdicts ask on which side of one half
#   the interval lies. With {glue:text}`two-networks:d` networks a cell its lower end is at most {glue:text}`best-low:.2f` and its upper end at least {glue:text}`least-high:.2f`;
# * rank at initialization: {glue:text}`two-rank-networks:d` networks, each on its own batch of training digits, the first {glue:text}`two-networks:d` of which are then trained; singular values (float64) above 0.01, 0.001 and 0.00001 of the largest are counted. *Effective rank* is the exponential of the entropy of the
#   normalized singular values; two other definitions are in the table.
#
# The criteria of this section were written when pilot runs with other seeds were known, and before the run of this page.
#
# ### What a layer does to the differences between samples
#
# ```{prf:proposition} Differences from layer to layer
# :label: prop-02-contraction
# Let $w \in \mathbb{R}^d$ and $b$ be random with a law that is symmetric about zero, the entries of $w$ uncorrelated with variance $s^2$, and $d'$ such neurons form a layer $x \mapsto x'$. Then for any two inputs
#
# $$
# \mathbb{E}\,\lvert x' - y'\rvert^2 \le \tfrac12\, d' s^2\, \lvert x - y\rvert^2 ,
# $$ (eq-02-contraction)
#
# and the two sides differ by at most $d'\,\mathbb{E}\bigl[(w\cdot(x-y))^2;\ A\bigr]$, where $A$ is the event that $w \cdot x + b$ and $w\cdot y + b$ have different signs.
# ```
#
# ```{prf:proof}
# Put $p = w \cdot x + b$ and $q = w \cdot y + b$. Always
#
# $$ (\mathrm{ReLU}(p) - \mathrm{ReLU}(q))^2 + (\mathrm{ReLU}(-p) - \mathrm{ReLU}(-q))^2 \le (p - q)^2, $$
#
# with equality if $p$ and $q$ have the same sign: then one term is $(p - q)^2$ and the other is zero. For different signs the terms are
# $p^2$ and $q^2$, and $(p - q)^2 = (\lvert p\rvert + \lvert q\rvert)^2$. By symmetry both terms have the same expectation, so each has at most half of $\mathbb{E}(p - q)^2 = s^2\lvert x - y\rvert^2$. Add the $d'$ neurons.
# ```
#
# For layers of constant width the factor $\frac12 d's^2$ is $\frac16$ with PyTorch's default and $1$ with He's. In the default's network the expected squared distance of any two samples after $L$ layers is at most a
# constant times $6^{-L}$ (the first layer has another number of inputs, hence the constant). The norm does not follow: $\mathbb{E}\lvert x'\rvert^2 = \frac16\lvert x\rvert^2 + \frac16$, because the biases are there, and it settles at $\frac15$. So all samples come to agree on one vector that the biases have made: rank one,
# at any fixed tolerance, after a depth that is logarithmic in it. The output layer then sees a constant and can learn nothing but the frequencies of the classes. With He, distances are kept on average in the limit of small ones, norms too, and what shrinks is the share of the distance in the norm, through the pairs of different signs alone:
# a power of the depth (chapter 3), not an exponential.

# %% tags=["hide-input"]
tolerances = [1e-2, 1e-3, 1e-5]
rates = [float(rate) for rate in parameters.learning_rates]


def figure_two_cell(name, depth):
    """One point of the figure, resumed if an interrupted run got that far."""
    return run.resume(
        f"figure-2-{name.replace(' ', '-')}-{depth}",
        lambda: rank_training.depth_cell(
            rank_training.configuration(name),
            depth,
            digits,
            width=parameters.width,
            batch_size=parameters.training_batch,
            networks=parameters.n_networks,
            rank_networks=max(parameters.n_networks, parameters.n_rank_networks),
            epochs=parameters.epochs,
            selection_rounds=sorted(parameters.selection_rounds),
            selection_networks=parameters.selection_networks,
            learning_rates=rates,
            tolerances=tolerances,
            generator=lambda label: run.generator("02", "figure-2", name, depth, label),
        ),
    )


names = ["PyTorch default", "He", "batch norm"]
measured = {
    (name, depth): figure_two_cell(name, depth)
    for name, depth in progress([(n, d) for n in names for d in sorted(parameters.depths)], "Figure 2")
}
family = {name: [rank_summaries.cell_summary(measured[name, d]) for d in sorted(parameters.depths)] for name in names}
run.record("depth_cells", [cell for cells in family.values() for cell in cells])
run.record(
    "figure_two",
    {
        "deepest": max(parameters.depths),
        "width": parameters.width,
        "batch": parameters.training_batch,
        "epochs": parameters.epochs,
        "depths": sorted(parameters.depths),
        "maximal_rank": min(parameters.width, parameters.training_batch),
        "selection_networks": parameters.selection_networks,
        "selection_rounds": ", ".join(str(one) for one in sorted(parameters.selection_rounds)),
        "selection_epochs": max(parameters.selection_rounds),
        "cells": sum(len(cells) for cells in family.values()),
        "cells_at_upper_edge": sum(cell["edge"] == "upper" for cells in family.values() for cell in cells),
        "cells_at_lower_edge": sum(cell["edge"] == "lower" for cells in family.values() for cell in cells),
        "rates": rates,
        "largest_rate": max(rates),
        "best_low": rank_summaries.count_interval(parameters.n_networks, parameters.n_networks, "all")["all_low"],
        "least_high": rank_summaries.count_interval(0, parameters.n_networks, "none")["none_high"],
        "networks": parameters.n_networks,
        "rank_networks": max(parameters.n_networks, parameters.n_rank_networks),
        "train_samples": len(digits.train_y),
        "test_samples": len(digits.test_y),
        "largest_class": float(digits.train_y.bincount().max() / len(digits.train_y)),
    },
)
deepest = max(parameters.depths)
run.record(
    "contractions",
    [rank_summaries.contraction(measured[name, deepest]) for name in ("PyTorch default", "He") if deepest > 1],
)
for key, only in (("test_differences", False), ("trained_differences", True)):
    run.record(key, rank_summaries.differences_in_test(family["batch norm"], family["He"], trained_only=only))
for name, key in [
    ("deepest", "deepest"),
    ("two-width", "width"),
    ("two-batch", "batch"),
    ("two-epochs", "epochs"),
    ("two-maximum", "maximal_rank"),
    ("two-search-networks", "selection_networks"),
    ("two-rounds", "selection_rounds"),
    ("cells", "cells"),
    ("cells-upper", "cells_at_upper_edge"),
    ("cells-lower", "cells_at_lower_edge"),
    ("largest-rate", "largest_rate"),
    ("best-low", "best_low"),
    ("least-high", "least_high"),
    ("two-networks", "networks"),
    ("two-rank-networks", "rank_networks"),
    ("train-samples", "train_samples"),
    ("test-samples", "test_samples"),
    ("largest-class", "largest_class"),
]:
    run.glue(name, f"figure_two['{key}']")
of_he = f"for c in depth_cells if c['configuration'] == 'He' and c['depth'] == {deepest}"
for name, value in [
    *[(f"he-rank-{k + 1}", f"c['rank_mean']['{one}']") for k, one in enumerate(tolerances)],
    ("he-entropy", "c['effective_mean']['entropy']"),
    ("he-participation", "c['effective_mean']['participation']"),
    ("he-live", "c['live_mean']"),
    ("he-lost-max", "c['lost_max']"),
    ("he-gradient", "median(c['first_gradient'])"),
]:
    run.glue(name, f"max({value} {of_he})")
run.glue("default-gradient", f"max(median(c['first_gradient']) {of_he.replace('He', 'PyTorch default')})")

# %% mystnb={"figure": {"caption": "The last hidden layer at initialization against depth: number of singular values above three shares of the largest, number of neurons that are not zero on the whole batch, and effective rank. Means over the networks, bands from the least to the largest. Compare the three tolerances with each other before comparing the configurations.", "name": "fig-02-depth-rank"}, "image": {"alt": "Three panels, for PyTorch's default, He and batch norm, of rank at initialization against the number of hidden layers on a logarithmic axis. Each has five curves: the rank at three tolerances, the number of neurons that are not silent, and the effective rank."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=3, height=2.9)
for panel, (name, cells) in zip(axes[:, 0], family.items(), strict=True):
    rank_figures.draw_rank_over_depth(panel, cells, name)
axes[2, 0].legend(fontsize=8, loc="lower left", ncols=2)
figures.show(figure)

# %% mystnb={"figure": {"caption": "Accuracy after training against depth, on the training samples (above) and on the test samples (below): means over the networks, every network a small open marker (a network that diverged lies at zero); the configurations are shifted against each other a little. Look at the deepest networks, and at single networks far from the mean.", "name": "fig-02-depth-accuracy"}, "image": {"alt": "Two panels of accuracy from 0 to 1 against the number of hidden layers, for training and test samples. Each has three curves, for PyTorch's default, He and batch norm, with a marker for every network."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, height=3.1)
for panel, which in zip(axes[:, 0], ("train", "test"), strict=True):
    rank_figures.draw_accuracy_over_depth(panel, family, which)
axes[0, 0].legend(loc="lower left")
figures.show(figure)

# %% tags=["hide-input"]
every = [cell for cells in family.values() for cell in cells]
figures.table(
    [
        [
            c["configuration"],
            c["depth"],
            *[plus_minus(c["rank_mean"][str(one)], c["rank_error"][str(one)]) for one in tolerances],
            plus_minus(c["live_mean"], c["live_error"]),
        ]
        for c in every
    ],
    header=["configuration", "layers", *[f"rank at {one:g}" for one in tolerances], "not silent"],
    caption=f"Rank of the last hidden layer at initialization, and its neurons that are not silent: means over "
    f"{run.values['figure_two']['rank_networks']} networks, ± one standard error; width {parameters.width}, batches of "
    f"{parameters.training_batch}.",
)
figures.table(
    [
        [
            c["configuration"],
            c["depth"],
            *[
                plus_minus(c["effective_mean"][kind], c["effective_error"][kind])
                for kind in ("entropy", "participation_singular", "participation")
            ],
        ]
        for c in every
    ],
    header=["configuration", "layers", "exp entropy", "(Σs)²/Σs²", "(Σs²)²/Σs⁴"],
    caption="Three effective ranks of the same layers, from the singular values s: exponential entropy of s/Σs, participation of "
    "the singular values, and participation of the eigenvalues of the Gram matrix; ± one standard error.",
)
figures.table(
    [
        [
            c["configuration"],
            c["depth"],
            f"{c['rate']:g}{'*' if c['edge'] in ('upper', 'lower') else ''}",
            plus_minus(c["train_mean"], c["train_error"]),
            c["train_min"],
            plus_minus(c["test_mean"], c["test_error"]),
        ]
        for c in every
    ],
    header=["configuration", "layers", "rate", "training accuracy", "minimum", "test accuracy"],
    caption=f"Training: accuracies after {parameters.epochs} epochs, means over {parameters.n_networks} networks, ± one standard "
    "error, and the least training accuracy. A star marks a rate at an end of the grid.",
)
figures.table(
    [
        [
            c["configuration"],
            c["depth"],
            f"{c['trained_count']} of {c['networks']}",
            f"{c['trained_low']:.2f} to {c['trained_high']:.2f}",
            c["diverged"],
        ]
        for c in every
    ],
    header=["configuration", "layers", "reached 0.99", "share", "diverged"],
    caption="How many networks reached the training accuracy 0.99, the exact interval for the share of all networks that would, and "
    "how many diverged.",
)
figures.table(
    [
        [
            c["configuration"],
            c["depth"],
            *[
                f"{'diverged' if one['loss'] is None else format(one['loss'], '.3f')} ({one['epochs']})"
                for one in c["grid"]
            ],
        ]
        for c in every
    ],
    header=["configuration", "layers", *[f"rate {rate:g}" for rate in rates]],
    caption=f"The search for the learning rate: the mean loss of {parameters.selection_networks} further networks when the rate left the "
    "search, in brackets after how many epochs. The chosen rate is the one with the least loss among those with the largest number of epochs.",
)
figures.table(
    [
        [
            c["configuration"],
            c["depth"],
            *[f"{one['accuracy_min']:.2f} to {one['accuracy_max']:.2f}" for one in c["grid"]],
        ]
        for c in every
    ],
    header=["configuration", "layers", *[f"rate {rate:g}" for rate in rates]],
    caption="The training accuracies of these networks at that time, 0 where training diverged.",
)

# %% [markdown]
# A network that gives every sample the same answer has the accuracy {glue:text}`largest-class:.3f`, the share of the largest class. In {glue:text}`cells-upper:d` of the {glue:text}`cells:d` cells the chosen rate is the largest of the grid, {glue:text}`largest-rate:g`, and in {glue:text}`cells-lower:d` the smallest:
# there a wider grid might do better.
#
# **What the table says about rank.** Ask first which rank. In the deepest He networks the last hidden layer has the rank {glue:text}`he-rank-1:.1f` at the tolerance 0.01, {glue:text}`he-rank-2:.1f` at 0.001 and {glue:text}`he-rank-3:.1f` at 0.00001, where the smaller of width and batch, {glue:text}`two-maximum:d`, is the maximum; its effective rank by entropy is
# {glue:text}`he-entropy:.2f`, by the participation of the Gram matrix {glue:text}`he-participation:.3f`. So the essay's "small fraction" is not one claim, and the verdicts below take each measure by itself.
# For the rank at the finest tolerance there is a simple explanation: it cannot exceed the number of neurons that are not silent on the whole batch ({glue:text}`he-live:.1f` here), and a batch of nearly one direction silences up to half of them (a neuron sees all of a narrow cone or nothing, each with probability near one half: the *nearly one direction* batch of
# {numref}`fig-02-growth`). The network in which the two numbers differ most has lost a share of {glue:text}`he-lost-max:.3f` of what its neurons allow. To the extent that they agree, a square layer loses rank not because its neurons repeat each other but because they are off; {prf:ref}`prop-02-half` says what it takes to have full rank there, twice as many neurons as samples.
# With batch norm no neuron can be silent unless it is constant on the batch.

# %% tags=["hide-input"]
run.judge(
    "essay-he-rank-at-1e-2",
    "essay-he-rank-at-1e-3",
    "essay-he-rank-at-1e-5",
    "essay-he-effective-rank",
    "rank-lost-by-silent-neurons",
    "batch-norm-keeps-rank",
    "torch-default-rank-one",
    "torch-default-contracts",
)
figures.table(
    [
        [
            c["configuration"],
            f"{c['from_layer']} to {c['to_layer']}",
            plus_minus(c["factor"], c["factor_error"]),
            1 / math.sqrt(6) if c["configuration"] == "PyTorch default" else 1.0,
            c["share_first"],
            c["share_last"],
        ]
        for c in run.values["contractions"]
    ],
    header=[
        "configuration",
        "layers",
        "factor a layer",
        "by the proposition, root mean square",
        "share of differences, first",
        "share of differences, last",
    ],
    caption="How a layer changes what differs between the samples, |GX|, in the deeper half of the deepest network: geometric mean over the layers, mean over the "
    "networks ± one standard error; and |GX|/|X| at the first and last of these layers.",
)

# %% [markdown]
# **And about training.**

# %% tags=["hide-input"]
run.judge(
    "essay-he-near-perfect-training",
    "essay-high-rank-not-necessary",
    "torch-default-does-not-train",
    "batch-norm-trains-at-every-depth",
)

# %% [markdown]
# **And about test accuracy**, which mixes two questions: whether a network trains at all, and how well one that has been trained does on new digits. A network that diverged or got stuck is a loss to the one who wanted to use it, and counts in full in the first comparison; it says nothing about generalization, and the second
# comparison leaves out every network below the training accuracy 0.99. What is left out is chosen by the outcome, and the learning rates differ between the configurations: the second comparison is not one of like with like either. Both intervals are Welch's, with error 0.005 on each side, and no difference is judged with fewer
# than three networks on either side.

# %% tags=["hide-input"]
figures.table(
    [
        [
            which,
            d["depth"],
            d["first"],
            d["second"],
            *(
                [f"{d['difference']:+.4f}", f"{d['low']:+.4f} to {d['high']:+.4f}"]
                if d["judged"]
                else ["not judged", ""]
            ),
        ]
        for which, key in (("all", "test_differences"), ("trained to 0.99", "trained_differences"))
        for d in run.values[key]
    ],
    header=["networks", "layers", "with batch norm", "He", "difference in test accuracy", "interval"],
    caption="Test accuracy with batch norm minus test accuracy of He networks: numbers of networks on either side, difference of the "
    "means, and Welch's interval.",
)
run.judge("batch-norm-tests-better-when-deep", "batch-norm-generalizes-better-when-deep")

# %% [markdown]
# ### Low rank without a tolerance
#
# Over depth, rank and much else change together: a deep default network has low rank *and* lets no difference between samples through. To separate them, take a network whose rank is low for certain, and nothing else is amiss. Replace the first weight matrix of a He network by its best approximation of rank one, scaled to the
# norm that it had. All samples then lie on one line after the first map, on two rays after the first ReLU (there are no biases), and on at most two rays ever after: **every hidden layer has rank at most two**, at any tolerance and in exact arithmetic. No two samples on one ray can be separated by random layers, by
# {prf:ref}`thm-02-attainable`. If low rank at initialization blocked training, this network could not train.

# %% tags=["hide-input"]
rank_one_depths = sorted({min(8, deepest), min(2, deepest)})
rank_one = [
    rank_summaries.cell_summary(figure_two_cell("He with rank-one start", depth))
    for depth in progress(rank_one_depths, "rank-one starts")
]
run.record("rank_one_cells", rank_one)
deepest_start = len(rank_one) - 1
run.glue("rank-one-depth", f"rank_one_cells[{deepest_start}]['depth']")
run.glue("rank-one-after", f"min(rank_one_cells[{deepest_start}]['rank_after']['1e-05'])")
run.glue("rank-one-after-coarse", f"min(rank_one_cells[{deepest_start}]['rank_after']['0.01'])")
run.glue("rank-one-gradient", f"median(rank_one_cells[{deepest_start}]['first_gradient'])")
figures.table(
    [
        [
            c["depth"],
            max(c["rank"]["1e-05"]),
            f"{min(c['rank_after']['1e-05'])} to {max(c['rank_after']['1e-05'])}",
            c["rate"],
            plus_minus(c["train_mean"], c["train_error"]),
            c["train_min"],
            f"{c['trained_count']} of {c['networks']}",
            plus_minus(c["test_mean"], c["test_error"]),
        ]
        for c in rank_one
    ],
    header=[
        "hidden layers",
        "largest rank at 0.00001",
        "after one step",
        "rate",
        "training accuracy",
        "its minimum",
        "reached 0.99",
        "test accuracy",
    ],
    caption=f"He networks whose first weights have rank one at initialization: {parameters.n_networks} networks, ± one standard error.",
)
run.judge("review-low-rank-does-not-block")

# %% [markdown]
# The gradient with respect to the first weights is $\sum_i x_i\,g_i^{\top}$ with the *inputs* $x_i$, which have not lost anything. The first step of plain SGD, at {glue:text}`rank-one-depth:d` hidden layers and with the chosen rate, took the rank of the last hidden layer on its own batch from at most two
# to {glue:text}`rank-one-after:d` or more at the tolerance 0.00001, and to {glue:text}`rank-one-after-coarse:d` or more at 0.01. The review's argument by way of the theorem is not needed for this, and would not do: its premise, that a random layer repairs the rank, is false for this start, yet its conclusion
# can be tested. What the deep default network lacks is not rank as such. Its differences between samples have become small *relative to the tolerance of the training itself*. So has the gradient that would enlarge them: with {glue:text}`deepest:d` hidden layers the gradient with respect to the first weights is {glue:text}`default-gradient:.1e` times that with respect to the output layer (the median network), against {glue:text}`he-gradient:.1e` with He
# at the same depth and {glue:text}`rank-one-gradient:.1e` with the rank-one start.
#
# **The conclusion, as computed.** High rank is not necessary for training: {glue:text}`verdict-essay-high-rank-not-necessary` over depth with He, {glue:text}`verdict-review-low-rank-does-not-block` with the rank-one start. That most He networks train at every depth up to 32 is {glue:text}`verdict-essay-he-near-perfect-training`; that batch norm
# does is {glue:text}`verdict-batch-norm-trains-at-every-depth`; that it tests better in deep networks is {glue:text}`verdict-batch-norm-tests-better-when-deep` with all networks counted, and {glue:text}`verdict-batch-norm-generalizes-better-when-deep` among the trained ones. None of this shows that rank is irrelevant, only that a low one does not decide.
#
# %% tags=["hide-input"]
failure = 1e-6
binomial_width = 128
while tail_bounds(128, 0.5, binomial_width).binomial > failure:
    binomial_width += 1
run.record(
    "width_example",
    {
        "n": 128,
        "failure": failure,
        "chernoff": neurons_for_confidence(128, 0.5, failure),
        "simple": math.ceil(4 * (128 - math.log(failure))),
        "binomial": binomial_width,
    },
)
for key in ("n", "failure", "chernoff", "simple", "binomial"):
    run.glue(f"width-{key}", f"width_example['{key}']")

# %% [markdown]
# ## Exercises
#
# ````{exercise} Two samples
# :label: ex-02-two
# *Pencil and paper, then `bnlib`; easy, 15 minutes.* Two samples in the plane at the angle $\theta \in (0, \pi)$.
#
# 1. With which probabilities does a neuron see both, only the first, only the second, or neither?
# 2. Compute $\mathbb{E}\,T$. What is it at $90°$, and what are its limits as $\theta \to 0$ and $\theta \to \pi$? Compare with $n/\gamma$.
# 3. Check one value by simulation: `rank_times(x.expand(10000, 2, 2), generator=...)[:, -1].double().mean()` for a float64 tensor `x` of shape (2, 2).
#
# ```{admonition} Hint
# :class: dropdown
# Which half-planes of $w$ see which sample? For the second part follow the first neuron that is not silent: did it see one sample or both?
# ```
# ````
#
# ```{solution} ex-02-two
# :label: sol-02-two
# :class: dropdown
# The half-planes $w \cdot x_1 > 0$ and $w \cdot x_2 > 0$ overlap in an angle $\pi - \theta$: both and neither have probability $q = \frac{\pi - \theta}{2\pi}$ each, "only one" has $\frac{\theta}{2\pi}$ for each of the two.
#
# The first rank needs a neuron that sees something: a wait of $\frac{1}{1 - q}$. Given that, with probability $\frac{q}{1-q}$ it saw both; its column is then in general position, and the next neuron that is not silent raises the rank: a wait of
# $\frac1{1-q}$. Otherwise its column is a multiple of a unit vector, and we wait for a neuron that sees the other sample: a wait of $2$. As $\frac{\theta}{\pi}\cdot\frac{1}{1-q}$ is the probability of the second case,
#
# $$
# \mathbb{E}\,T = \frac{1}{1-q}\Bigl(1 + \frac{q}{1-q} + \frac{2\theta}{\pi}\Bigr).
# $$
#
# At $90°$, $q = \frac14$ and $\mathbb{E}\,T = \frac{28}{9}$. For $\theta \to 0$, $q \to \frac12$ and $\mathbb{E}\,T \to 4 = n/\gamma$: the bound is attained in the limit. For $\theta \to \pi$, $q \to 0$ and $\mathbb{E}\,T \to 3$. The library has the formula as
# `bnlib.rank.two_sample_neurons`.
# ```
#
# ````{exercise} Three samples in the plane
# :label: ex-02-three
# *Pencil and paper, checked with `bnlib`; medium, 20 minutes.* Compute $\gamma$ by hand for the batches (i) $(1,0), (1,1), (0,1)$; (ii) $(1,0), (-1,1), (-1,-1)$; (iii) three directions on one side within an angle $\delta < 90°$. For (iii) write down a $v$ that attains the minimum. Then check with
# `bnlib.planar_gamma.gamma_planar`.
#
# ```{admonition} Hint
# :class: dropdown
# Which kinds of runs in {prf:ref}`thm-02-plane` need more than three lines? For (iii), where are all three samples on the same side of $w$?
# ```
# ````
#
# ```{solution} ex-02-three
# :label: sol-02-three
# :class: dropdown
# With three samples only kind 1 of {prf:ref}`thm-02-plane` is possible, and only if all three have the same sign: for some start of the half turn all three lie in one half-plane.
#
# (i) They do, over $90°$: $\gamma = \min(\frac12, \frac{90}{180}) = \frac12$. (ii) No half-plane contains all three in its interior: no silent sectors, $\gamma = \frac12$. (iii) $\gamma = \delta/\pi$. The coefficients are those of the linear dependency
# $v_1 x_1 + v_2 x_2 + v_3 x_3 = 0$; a neuron that sees all three samples gives $f_v(w) = w \cdot \sum_j v_j x_j = 0$, one that sees none gives zero as well, and only the neurons in between notice.
# ```
#
# ````{exercise} A different activation
# :label: ex-02-leaky
# *Pencil and paper; medium, 20 minutes.* Replace ReLU by (i) the absolute value, (ii) leaky ReLU, $\phi(t) = t$ for $t > 0$ and $a t$ for $t \le 0$ with $0 < a < 1$, (iii) the identity. What is the attainable rank in each case, in the manner of {eq}`eq-02-attainable`? For which of them
# is a batch of $n$ samples in general position in the plane, $n$ large, lifted to full rank?
#
# ```{admonition} Hint
# :class: dropdown
# Split $\phi$ into an even and an odd part, and repeat the proof of {prf:ref}`thm-02-attainable` with their coefficients.
# ```
# ````
#
# ```{solution} ex-02-leaky
# :label: sol-02-leaky
# :class: dropdown
# Split $\phi$ into its even part $b\lvert t\rvert$ and its odd part $c\,t$. (i) $c = 0$: the number of lines; an antipodal pair counts once. (ii) $b = \frac{1-a}{2}$ and $c = \frac{1+a}{2}$ are both not zero: exactly as for ReLU.
# (iii) $b = 0$: the rank of $X$. So (i) and (ii) lift the planar batch to rank $n$; the identity leaves it at two. It is the kink, not the nonlinearity as such, that separates collinear-free samples here.
# ```
#
# ````{exercise} The last ranks are the expensive ones
# :label: ex-02-last
# *Pencil and paper, then `bnlib`; hard, 40 minutes.* For a subspace $V$ of dimension $k$ let $\gamma_k$ be the least probability, over all such $V$, that a neuron has $f_v(w) \ne 0$ for some $v \in V$; so $\gamma_1 = \gamma$.
#
# 1. Show that $\mathbb{E}\,T \le \sum_{k=1}^n 1/\gamma_k$, and that $\gamma_1 \le \gamma_2 \le \dots \le \gamma_n$.
# 2. Compute all $\gamma_k$ for orthogonal samples.
# 3. Take `x` of 8 samples spread evenly over $60°$ and look at the mean of `rank_times(...)` for every rank, not only the last. Which ranks take the time?
#
# ```{admonition} Hint
# :class: dropdown
# For 1: which event lets the rank rise while it is $n - k$? For 2: a vector $v$ is silent as soon as all samples of its support are.
# ```
# ````
#
# ```{solution} ex-02-last
# :label: sol-02-last
# :class: dropdown
# 1. While the rank is $n - k$ take for $V$ all vectors orthogonal to the columns so far; the rank rises if and only if $f_v \ne 0$ for some $v \in V$. The wait is at most geometric with $\gamma_k$. A $V$ of dimension $k + 1$ contains one of dimension $k$, and sees at least what that one sees.
# 2. By the proof of {prf:ref}`prop-02-orthogonal`, $\gamma_k \ge 1 - 2^{-k}$, and $V$ spanned by $k$ of the unit vectors attains it.
# 3. In the run on this page rank four came after {glue:text}`fan-4:.1f` neurons on average, rank six after {glue:text}`fan-6:.1f`, rank seven after {glue:text}`fan-7:.1f` and rank eight after {glue:text}`fan-8:.1f`. Early on almost any neuron shows
#    something new; at the end one narrow pair of sectors has to be hit.
# ```
#
# ````{exercise} Wide enough
# :label: ex-02-width
# *With `bnlib`; easy, 15 minutes.* A layer shall lift {glue:text}`width-n:d` linearly independent samples to full rank, and fail with probability at most {glue:text}`width-failure:.0e`.
#
# 1. Which width does {eq}`eq-02-width` ask for, and which does the simpler $\frac2\gamma(n + \ln\frac1\varepsilon)$?
# 2. What is the least width for which the binomial tail in {eq}`eq-02-tail` is small enough? For which samples can no smaller one do?
#
# ```{admonition} Hint
# :class: dropdown
# `neurons_for_confidence` and `tail_bounds` in `bnlib.rank`; the tail falls with the width, so a loop upwards from $n$ finds the least.
# ```
# ````
#
# ```{solution} ex-02-width
# :label: sol-02-width
# :class: dropdown
# With $\gamma = \frac12$ the theorem asks for {glue:text}`width-chernoff:d` neurons, the simpler form for {glue:text}`width-simple:d`, and the binomial tail is small enough from {glue:text}`width-binomial:d` on. For samples of nearly one direction the tail is the truth in the limit (each neuron
# sees all of them or none), so none of this width can be spared; orthogonal samples need far fewer.
# ```
#
# ````{exercise} The learning rate at 32 layers
# :label: ex-02-rate
# *Change a parameter and explain; medium, 10 minutes and a few minutes of computing.* In {numref}`fig-02-depth-accuracy`, single He networks of 32 layers may lie far below the others. Is that the rank, or the learning rate? Run the chapter with one small rate only,
#
#     .venv/bin/papermill notebooks/02_rank_theorem.ipynb slow.ipynb -y '{learning_rates: [0.003], depths: [16, 32], n_trials: 40, batch_sizes: [4, 8]}'
#
# and compare the minimum of the training accuracy, and the test accuracy, with the page. Then explain why the rank cannot be the difference.
#
# ```{admonition} Hint
# :class: dropdown
# What do the two runs share, network by network? The streams of random numbers are named by configuration and depth.
# ```
# ````
#
# ```{solution} ex-02-rate
# :label: sol-02-rate
# :class: dropdown
# The initial networks are the same in both runs, bit by bit, and so is every rank: the stream of the initial parameters does not know the learning rate. Whatever changes is due to the rate. If a network that was stuck on the page trains at the smaller rate, its rank at initialization cannot have been what stopped it; if
# one that trained on the page falls short now, look at the number of steps: a smaller rate makes less way in the same number of epochs. The table of the search shows the other end of the grid: read the columns of the largest rates from shallow to deep.
# ```
#
# ````{exercise} The plane's constant, and the space's
# :label: ex-02-open
# *Open.* Two questions that this chapter leaves open.
#
# 1. Is $\mathbb{E}[T\gamma]$ bounded for Gaussian samples in the plane as $n \to \infty$? The theorem only gives $n$, the measurement a constant.
# 2. Find an algorithm for $\gamma(X)$ in three dimensions, polynomial in $n$. How do the brackets of the table compare with the exact values, and does $\mathbb{E}[T\gamma]$ stay near one?
#
# ```{admonition} Hint
# :class: dropdown
# For 1, bound the $\gamma_k$ of {ref}`ex-02-last` from below for $k \ge 2$: how close can two disjoint cheap runs be? For 2, the silent sets of $f_v$ are unions of cells of an arrangement of great circles on the sphere; which sets of cells can be silent together?
# ```
# ````
#
# ```{solution} ex-02-open
# :label: sol-02-open
# :class: dropdown
# We know no answer. For the first, note where the difficulty lies: $\sum_k 1/\gamma_k$ must be compared with $1/\gamma_1$, batch by batch, and the least $\gamma$'s come from triples of samples that happen to be close; with many samples there are many such triples, of nearly equal cost. For the second, `tests/gamma_oracle.py` enumerates silent
# sets of sectors in exact arithmetic for the plane; its analogue on the sphere is exponential and is a start for small $n$.
# ```

# %% tags=["hide-input"]
run.finish()
