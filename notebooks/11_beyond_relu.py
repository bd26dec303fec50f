# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Beyond ReLU: which architectures have an odd point?
#
# :::{admonition} In short
# :class: tip
# **Question.** Recentering and ReLU drive a large batch to one outlier and a cluster; full batch norm keeps it symmetric (chapter 8 has exceptions); without either it collapses. Is that a property of ReLU,
# of fully connected layers, of batch norm? The essay leaves convolutions, attention, normalization-free networks, GELU and Swish open.
#
# **Answer.** We run {glue:text}`cell-count` cells (an architecture, a batch size, a width) of {glue:text}`draw-count` draws each, and put every draw into a class by a rule fixed
# beforehand. That recentering leads large batches to an outlier for *every* activation is {glue:text}`verdict-recentering-any-activation`; for the positively homogeneous ones it is
# {glue:text}`verdict-recentering-homogeneous`, in convolutions {glue:text}`verdict-recentering-convolution`, in attention blocks {glue:text}`verdict-recentering-attention`. For GELU and SiLU the
# weight variance decides ({glue:text}`verdict-variance-decides`). That rescaling keeps every batch symmetric is {glue:text}`verdict-rescaling-symmetric`; that batches leave the symmetric
# state where the mean-field multiplier is above 1: {glue:text}`verdict-multiplier-above-one-leaves`; that they stay in it where it is below 1: {glue:text}`verdict-multiplier-below-one-stays`. With layer norm or RMS norm there is no outlier: {glue:text}`verdict-sample-norm-no-outlier`. The infinite-width theory of this
# chapter names the class of the decided cells: {glue:text}`verdict-infinite-width-names-class`.
#
# **To take away:** [one table](#take-away-table), architecture × stages → geometry.
# :::
#
# All set-ups of this chapter are ours; neither the paper nor its review runs any of them. "At this size" holds for every sentence: batches of {glue:text}`batch-sizes`, networks of
# {glue:text}`depth` layers, narrow enough for a laptop.

# %% tags=["parameters", "hide-input"]
device = "auto"
seed = 0
results_dir = "build/runs"
architectures = ["all"]
batch_sizes = [4, 8, 32]
dense_widths = [32, 80]
convolution_widths = [6, 12]
attention_widths = [20, 40]
depth = 200
draws = 20
theory_layers = 400
slopes = [-1, -0.8, -0.6, -0.4, -0.2, 0, 0.2, 0.4, 0.6, 0.8, 1]
slope_batch_sizes = [8, 32]
variance_activations = ["gelu", "silu", "tanh"]
variances = [0.5, 1, 1.5, 2, 3, 4, 6]
map_batch_size = 32
map_width = 80
chance_draws = 10000
scheduler = ""

# %% tags=["hide-input"]
from bnlib.architectures import activation_names, specs
from bnlib.parameters import check, integer, integers, numbers
from bnlib.sweeps import address

parameters = check(
    globals(),
    architectures=specs,
    batch_sizes=integers(minimum=4),
    dense_widths=integers(minimum=4, at_least=2),
    convolution_widths=integers(minimum=2, at_least=2),
    attention_widths=integers(minimum=4, at_least=2),
    depth=integer(minimum=2),
    draws=integer(minimum=2),
    theory_layers=integer(minimum=10),
    slopes=numbers(minimum=-1, maximum=1),
    slope_batch_sizes=integers(minimum=4),
    variance_activations=activation_names,
    variances=numbers(minimum=0.01, maximum=100),
    map_batch_size=integer(minimum=4),
    map_width=integer(minimum=4),
    chance_draws=integer(minimum=100),
    scheduler=address,
)

# %% tags=["hide-input"]
from bnlib import architecture_tables as tables
from bnlib import beyond_relu as beyond
from bnlib import figures, records
from bnlib.architectures import chosen
from bnlib.geometry_classes import Rule
from bnlib.records import load_claims

run = records.start("11_beyond_relu", parameters)
rule = Rule.of_claim(load_claims()["three-words"])
run.record("rule", vars(rule))
run.record("depth", parameters.depth)
run.record("batch_sizes", parameters.batch_sizes)

# %% [markdown]
# ## The rule
#
# Let $x_1,\dots,x_n$ be the representations of a batch behind a layer (of all pixels or tokens of a sample, one behind the other), and $\bar x$ their mean. The *odd* sample is the one farthest
# from $\bar x$, and its **separation** is its distance from the mean of the others over the root mean squared distance of these from their own mean,
#
# $$ s = \frac{\lVert x_1-\nu\rVert}{\sqrt{\frac1{n-1}\sum_{i\ge2}\lVert x_i-\nu\rVert^2}},\qquad \nu = \frac1{n-1}\sum_{i\ge2}x_i . $$ (eq-11-separation)
#
# Distances do not move under a common shift, so that an activation with a positive mean is judged as one without. If all distances are equal, $s^2 = n/(n-2)$: at most 1.42 from $n=4$ on. In the
# outlier state of chapter 7, with $u$ half the squared distance inside the cluster over the squared distance of the outlier from $\nu$, $s^2 = \frac{n-1}{(n-2)\,u}$: from 5.8 at $n=7$ on. The
# threshold lies between the two, evenly in logarithms. A draw gets the first class that applies:
#
# | class | rule |
# |---|---|
# | broken | something is no longer a number (an overflow), or the whole representation is zero |
# | collapse | all samples within {glue:text}`rule-collapse:.0f`° of each other |
# | line | the lines from the origin through any two samples within {glue:text}`rule-collapse:.0f`° of each other, samples on both sides |
# | outlier | the odd sample's separation is at least {glue:text}`rule-separation:.0f`, and it is at least {glue:text}`rule-lead:.0f` times as far from the mean of the others as any of them |
# | symmetric | nobody's separation is as large, no angle is below {glue:text}`rule-angle:.2f` of the mean angle, no norm above {glue:text}`rule-norm:.0f` times another |
# | other | none of these |
#
# The numbers stand in `book/claims.yml` (field `thresholds` of *three-words*); they were set after pilot runs with other seeds than the run of record's. The class that counts is the one behind the last layer, and the **onset** is the first
# layer from which on a draw keeps it. Shares have exact (Clopper–Pearson) intervals; a class is called *decided* in a cell if its share is at least one half with its whole interval.
# A statement about many cells could be refuted by one of them by chance; so one cell refutes it only with its 99.9 percent interval.
#
# How often does the rule see something in nothing? The same rule, on batches without any network: independent points on one line, and independent Gaussian points in as many dimensions as the
# wider network has neurons.

# %% tags=["hide-input"]
chance = beyond.chance_table(
    parameters.batch_sizes,
    parameters.dense_widths[-1],
    parameters.chance_draws,
    rule,
    generator=run.generator("chance"),
)
run.record("chance", chance)
run.glue("rule-collapse", "rule['collapse_deg']")
run.glue("rule-separation", "rule['separation']")
run.glue("rule-lead", "rule['lead']")
run.glue("rule-angle", "rule['least_angle']")
run.glue("rule-norm", "rule['norm_spread']")
run.glue("depth", "depth")
run.glue("batch-sizes", "batch_sizes")
figures.table(
    [[row[key] for key in ("batch", "n", "outlier", "outlier_low", "outlier_high", "symmetric")] for row in chance],
    header=["batch", "n", "share with an outlier", "from", "to (95 percent)", "share symmetric"],
    caption=f"What the rule says of random points, {parameters.chance_draws} batches each",
)

# %% [markdown]
# On a line the odd one of few points passes for an outlier in a share of {glue:text}`chance-line:.2f`, by chance alone, at the smallest batch size, and of {glue:text}`chance-line-large:.3f` at the largest: in linear networks,
# which end on a line, the word means little for small batches. In high dimension the share is below {glue:text}`chance-space:.4f` (the upper end of the largest interval). That is why the statements about outliers below look at the largest batches.
#
# ## Why homogeneity matters
#
# An infinitely wide layer with Gaussian weights of variance $\sigma^2/d$ sends the Gram matrix $K$ (per neuron) to
#
# $$ \begin{aligned} K &\mapsto V\bigl(\sigma^2\, G K G\bigr),\\ V(S)_{ij} &= \mathbb E\,\phi(u)\,\phi(v),\quad (u,v)\sim\mathcal N\!\left(0, \begin{pmatrix}S_{ii}&S_{ij}\\S_{ij}&S_{jj}\end{pmatrix}\right). \end{aligned} $$ (eq-11-map)
#
# ```{prf:proposition} Homogeneous activations share their fixed points
# :label: prop-11-homogeneous
# Let $\phi(x) = a\,\mathrm{ReLU}(x) - b\,\mathrm{ReLU}(-x)$ with $a\ne b$, and $w = 2ab/(a^2+b^2)$. Then for every centered $C$, with $V$ the map of $\sqrt2\,\mathrm{ReLU}$,
#
# $$ GV_\phi(C)G = \tfrac{a^2+b^2}{2}\bigl((1-w)\,G\,V(C)\,G + w\,C\bigr). $$
# So the fixed points
# of {eq}`eq-11-map`, seen through $G$ and up to scale, do not depend on $a$ and $b$, nor on $\sigma^2$; in particular the separation {eq}`eq-11-separation` of the outlier state is that of ReLU for every leaky slope.
# ```
# ```{prf:proof}
# For unit-variance $u, v$ of correlation $c$: $\mathbb E\,\mathrm{ReLU}(u)\mathrm{ReLU}(v) = J(c)/2$, and with $-v$ in place of $v$, $J(-c)/2 = (J(c)-c)/2$. Expanding the product of the two activations,
#
# $$ \begin{aligned} \mathbb E\,\phi(u)\phi(v) &= \tfrac{a^2+b^2}{2}J(c) - ab\,(J(c)-c)\\ &= \tfrac{a^2+b^2}2\bigl((1-w)J(c)+wc\bigr). \end{aligned} $$
#
# Multiply by the two standard deviations: entry by entry, $V_\phi(C) = \frac{a^2+b^2}2((1-w)V(C)+wC)$. Apply $G$ on both
# sides; $GCG = C$. If $GV(C)G$ is a multiple of $C$, so is the combination, and conversely as $w\ne1$. The variance $\sigma^2$ multiplies everything. The separation depends on distances alone, so $G$ does not change it.
# ```
#
# Chapter 7 draws the consequences for stability: it carries over, as long as the combination stays positive; near the slope $-1$ it need not.
#
# For GELU, SiLU and tanh nothing of this holds: the layer sees its own scale. One closed form can be had.
#
# ```{prf:proposition} The kernel of GELU
# :label: prop-11-gelu
# Let $\phi(x) = x\,\Phi(x)$ with the standard normal distribution function $\Phi$ (and its density $\varphi$), and $(u,v)$ Gaussian with variances $p, q$ and covariance $r$; $D = (1+p)(1+q)-r^2$. Then
#
# $$ \begin{aligned} \mathbb E\,\phi(u)\phi(v) ={}& r\left(\frac14 + \frac1{2\pi}\arcsin\frac{r}{\sqrt{(1+p)(1+q)}}\right)\\ &+ \frac{1}{2\pi\sqrt D}\left(p\Bigl(q-\frac{r^2}{1+p}\Bigr)+\frac{r^2}{1+q}\right). \end{aligned} $$ (eq-11-gelu)
# ```
# ```{prf:proof}
# Gaussian integration by parts in $u$: $\mathbb E[u\,f(u,v)] = p\,\mathbb E f_u + r\,\mathbb E f_v$ with $f = v\,\Phi(u)\Phi(v)$ gives
#
# $$ p\,\mathbb E[v\varphi(u)\Phi(v)] + r\,\mathbb E[\Phi(u)\Phi(v)] + r\,\mathbb E[v\Phi(u)\varphi(v)]. $$
#
# The middle
# term: $\mathbb E\,\Phi(u)\Phi(v)$ is the chance that two Gaussians of variances $1+p$, $1+q$ and covariance $r$ are both negative, $\frac14+\frac1{2\pi}\arcsin(\cdot)$. In the first, $\varphi(u)$ times the density of $u$ is $\frac1{\sqrt{2\pi(1+p)}}$ times
# a Gaussian density, under which $v$ has variance $t = q - r^2/(1+p)$; and $\mathbb E[v\Phi(v)] = t\,\mathbb E\varphi(v) = t/\sqrt{2\pi(1+t)}$. As $(1+p)(1+t) = D$, the first term is $p\,t/(2\pi\sqrt D)$. In the third, $\varphi(v)$ leaves the covariance $r/(1+q)$
# and the variance $p - r^2/(1+q)$ of $u$, and $\mathbb E[v\Phi(u)] = \frac{r}{1+q}\,\mathbb E\varphi(u)$, which gives $r\cdot\frac{r}{1+q}/(2\pi\sqrt D)$.
# ```
#
# For large $p,q,r$ this becomes the kernel of ReLU, for small ones that of $x/2$: **a GELU network is a ReLU network where its scale grows, and a linear one where it shrinks.** SiLU behaves alike, $\tanh$ the other way around: a sign where the scale is large, linear where it is small.
# A recentered linear network ends on a line (rank one), a recentered ReLU network at the outlier. So for them $\sigma^2$ is a parameter of the geometry, and the map over $\sigma^2$ below is not optional. Layer norm before the activation fixes the scale,
# and $\sigma^2$ drops out.
#
# The theory column of the tables iterates {eq}`eq-11-map`, in the class of one distinguished sample (`bnlib.activation_maps`), with the stages that keep neurons Gaussian, from two starts: nearly symmetric, and with an outlier. Behind rescaling over the batch neurons are not Gaussian; there
# the theory is chapter 8's: the largest multiplier of the symmetric fixed point.
#
# ## The networks
#
# An architecture is a line of text, such as `convolution RC+NL activation=gelu residual=0.5`. Unless a line says otherwise: dense layers, ReLU, Gaussian weights with $\sigma^2=2$, no bias, $\varepsilon=0$, inputs independent Gaussian.
# Stages are applied in the order of the line. *Convolutions* are $3\times3$ on a torus of $4\times4$ pixels, the smallest on which a neuron does not see the whole image at once; RC and RS go per channel over batch and space. A *residual* block is $x + s\,W_2\,\mathrm{stages}(W_1x)$. An *attention* block acts on sequences of four tokens: one head with
# $1/\sqrt d$, then a two-layer perceptron, each behind a norm and beside a skip connection of strength 1 (with the norm after: behind each addition); RC and RS go over batch and tokens, LN over one token. *Standardized weights* have each neuron's weights recentered and rescaled. β is a Gaussian shift per neuron of that standard deviation, and bias
# alike before the stages. Dropout is in training mode.
#
# The **scale** is divided out, and its logarithm kept, only where the architecture is positively homogeneous, which a spec knows (its `degree`): with degree 2, for $x^2$, the logarithm doubles every layer. Elsewhere the scale stays in the network; a draw that overflows is *broken*, with the layer, and does not disturb the others.

# %% tags=["hide-input"]
rows = chosen(parameters.architectures)
widths = {
    "dense": parameters.dense_widths[:2],
    "convolution": parameters.convolution_widths[:2],
    "attention": parameters.attention_widths[:2],
}
cells = beyond.table_of_architectures(rows, widths, parameters, rule)
run.record("cells", cells)
run.record("cell_count", len(cells))
run.record("named", beyond.named_share(cells))
run.record("agreement", beyond.agreement(cells))
run.record("onset_pairs", beyond.onset_pairs(cells))
run.record("same_class", beyond.same_class(cells))
run.glue("cell-count", "cell_count")
run.glue("draw-count", "cells[0]['draws']")
run.glue("chance-line", "max(c['outlier'] for c in chance if c['batch'] == 'on a line' and c['n'] == min(batch_sizes))")
run.glue(
    "chance-line-large", "max(c['outlier'] for c in chance if c['batch'] == 'on a line' and c['n'] == max(batch_sizes))"
)
run.glue("chance-space", "max(c['outlier_high'] for c in chance if c['batch'] == 'in space')")

# %% [markdown]
# (take-away-table)=
# ## The table to take away
#
# Each box names the commonest class at the larger width, with the batch sizes at which it is; one class alone holds, decided, at every batch size. A question mark: not decided (fewer than half of the draws cannot be excluded).

# %% tags=["hide-input"]
figures.table(
    tables.take_away(cells),
    header=["architecture", "no norm", "RC", "RC+RS (batch norm)", "layer norm", "RMS norm"],
    caption=f"Architecture × stages → geometry, behind {parameters.depth} layers",
)

# %% [markdown]
# Read down the column RC, and compare the homogeneous activations with the others; then along a row, from RC to RC+RS and to layer norm. What of it holds, the verdicts below say.

# %% mystnb={"figure": {"caption": "Share of draws in each class behind the last layer, at the largest batch size and the larger width: with recentering only (above) and with full batch norm (below). Look for the hatched bars.", "name": "fig-11-shares"}, "image": {"alt": "Two panels of stacked horizontal bars from 0 to 1, one bar an architecture; fills stand for the classes symmetric, outlier, collapse, line, other, broken."}} tags=["hide-input"]
figures.show(beyond.shares_figure(cells, max(parameters.batch_sizes)))

# %% tags=["hide-input"]
run.judge(
    "three-words",
    "recentering-any-activation",
    "rescaling-symmetric",
    "sample-norm-no-outlier",
    "no-norm-collapses",
)

# %% [markdown]
# The three words of the question, symmetric, outlier and collapse, cover a share of {glue:text}`named-share:.3f` of all draws. Of the rest {glue:text}`line-count` draws are on a line, {glue:text}`broken-count` broken, and {glue:text}`other-count` are none of these.
# (The share is over the cells of this table, a choice of ours; another table would give another one.) What to expect among these: networks on their way to a line or a ray, and norms that drift apart at random. Where nothing couples the norms of the samples, as without a norm and with standardized weights or dropout, the logarithm of each ratio of norms is a random walk over the layers, whose variance grows like depth over width.
#
# ## Blocks of practice
#
# The essay asks whether similar things occur "in attention mechanisms or normalization free architectures"; we add convolutions, skip connections, the order of the stages, and what batch norm has beside RC and RS: β, γ, ε, a bias.

# %% tags=["hide-input"]
run.judge(
    "recentering-convolution",
    "recentering-attention",
    "normalization-free-outlier",
    "skip-connections-delay",
    "order-of-stages",
    "orthogonal-weights-same",
    "usual-settings-change-nothing",
    "shifts-destroy-the-outlier",
    "large-epsilon-brings-the-outlier",
)

# %% mystnb={"figure": {"caption": "Median depth, with its 95 percent interval, from which on an outlier stays, for every architecture whose commonest class is the outlier at the largest batch size and the larger width.", "name": "fig-11-onset"}, "image": {"alt": "One horizontal line with a dot for each architecture, over a logarithmic axis of layers."}} tags=["hide-input"]
figures.show(beyond.onset_figure(cells, max(parameters.batch_sizes), parameters.depth))

# %% [markdown]
# *What a large ε does.* With $\varepsilon$ far above the variance of a neuron, RS divides by $\sqrt\varepsilon$ and is no more than a constant: RC+RS is RC. The scale of a recentered network under He's weights shrinks (in a large symmetric batch by $1-1/\pi$ a layer in squares, beside an outlier by about $1-2/n$), and an $\varepsilon$ of 1 divides it by two or more besides, so that the variance falls
# ever further below $\varepsilon$. At the usual $10^{-5}$ rescaling puts the variance in front of the next norm back to $\frac{n-1}n\bigl(1-J(-\frac1{n-1})\bigr)$ in every layer, about two thirds, which $\varepsilon$ does not move.
#
# *What a shift β does.* Without rescaling the scale shrinks and the shift does not: soon $\phi(\text{shift}+\text{small})$ is, up to a common vector, linear in the small part. The common vector is all that angles see.
#
# *What the order of the stages can do.* RC commutes with the weights: "after" is, for RC, the same network read off at another stage, and distances are even the same there; only angles and norms differ. RS does not commute, and RC+RS after the activation is another network.
#
# ## Theory against the networks

# %% tags=["hide-input"]
run.judge("infinite-width-names-class", "multiplier-above-one-leaves", "multiplier-below-one-stays")

# %% [markdown]
# A multiplier above 1 means that a symmetric batch cannot stay; one below 1 means only that a batch near the symmetric state returns to it. Chapter 8 finds other states beside the symmetric one, in which one or a few samples win, from a batch size on that depends on the activation;
# networks of finite width can get there through their own fluctuations. Such a batch is *other* here, unless a single sample wins.
#
# Of the {glue:text}`theory-decided` decided cells ({glue:text}`theory-architectures` architectures) for which there is a theory without rescaling, {glue:text}`theory-agree` show a class to which the infinitely wide network goes from one of its two starts. Two starts may name two classes, so some agreement is
# cheap: held against the theory of *other* architectures, the cells agree in a share of {glue:text}`theory-by-chance:.2f`.
#
# ## Leaky ReLU over its slope

# %% tags=["hide-input"]
slope_cells = beyond.slope_cells(parameters, rule)
run.record("slope_cells", [cell for row in slope_cells.values() for cell in row])
run.record("slope_largest", max(parameters.slope_batch_sizes))
run.judge("recentering-homogeneous", "outlier-for-every-slope")

# %% mystnb={"figure": {"caption": "Recentered leaky ReLU networks. Above: share of draws with an outlier, with exact 95 percent intervals. Below: the median angle of the odd sample to the mean of the others, over all draws, and arccos(−w), w = 2s/(1+s²), the theory's for large batches.", "name": "fig-11-slopes"}, "image": {"alt": "Two panels over the slope from -1 to 1: shares between 0 and 1 for each batch size with error bars, and angles from 0 to 180 degrees with a falling or rising black curve."}} tags=["hide-input"]
figures.show(beyond.slope_figure(slope_cells, parameters.slopes))

# %% [markdown]
# By {prf:ref}`prop-11-homogeneous` the separation at the fixed point is the same for every slope; the *angle* is not: behind the activation the outlier stands at $\arccos(-w)$ to the cluster for large batches, 90° for ReLU only. "Orthogonal" is ReLU's accident; "one sample apart" is the general fact. At slope 1 the network is linear.
#
# ## The map over σ²

# %% tags=["hide-input"]
variance_cells = beyond.variance_cells(parameters, rule)
run.record("variance_cells", variance_cells)
run.judge("variance-decides", "tanh-has-no-outlier")

# %% mystnb={"figure": {"caption": "Share of draws with an outlier behind the last layer (number and colour), the commonest class, and in brackets the class of the infinitely wide network that starts with an outlier; with recentering only (above) and without a norm (below).", "name": "fig-11-variance"}, "image": {"alt": "Two tables of coloured boxes: one row an activation, one column a weight variance; each box holds a share and two words."}} tags=["hide-input"]
figures.show(beyond.variance_figure(variance_cells, parameters.variance_activations, parameters.variances))

# %% [markdown]
# ## x², and where the scale went
#
# $x^2$ has degree 2: the logarithm of a sample's norm doubles every layer, whatever happens. Without a norm two samples whose norms differ by a factor $r$ differ by $r^{2^L}$ behind $L$ layers: one sample holds everything, and the others vanish beside it, even in double precision, as soon as $2^L\log_{10}r$ exceeds some three hundred. That is an outlier by the rule
# (the others coincide, at zero, in its scale). The medians of $\log_{10}$ of the norm below show what was divided out; where the network is not homogeneous, nothing was.

# %% tags=["hide-input"]
figures.table(
    beyond.scale_table(cells, max(parameters.batch_sizes)),
    header=["architecture", "degree", "median log10 of the norm", "classes", "broken draws"],
    caption=f"Scales behind {parameters.depth} layers at the largest batch size and the larger width, dense layers",
)

# %% [markdown]
# ## All cells
#
# :::{admonition} Every cell with its counts, intervals and onsets
# :class: dropdown note
# The full table follows; it is long.
# :::

# %% tags=["hide-input", "hide-output"]
figures.table(
    tables.full_table(cells),
    header=[
        "architecture",
        "n",
        "width",
        "draws",
        "share of the commonest (95 %)",
        "onset (95 %)",
        "separation",
        "odd angle [°]",
        "theory: from symmetric / outlier",
    ],
    caption="Every cell; medians over the draws",
)

# %% [markdown]
# ## Your own architecture
#
# One line is enough, in the shell or in a copy of this notebook:
#
# ```bash
# .venv/bin/papermill notebooks/11_beyond_relu.ipynb out.ipynb -y '{architectures: ["ReLU", "RC+NL activation=silu weight_variance=6 residual=1"]}'
# ```
#
# Sweeps use all cores, keep every finished cell by the content of its spec and of the program, and go on after an interruption (the run time at the foot of this page then counts only what was left to do); `-p scheduler tcp://...` sends them to a Dask cluster (the README says how to start one).
#
# ## Exercises
#
# ```{exercise} The separation of equal distances
# :label: ex-11-equal
# *Easy, 10 minutes, pencil and paper.* Show that $s^2 = n/(n-2)$ if all $n$ samples have the same distance from each other, and that in general $s^2 = \frac{n^2}{n-1}\,\frac{q}{1-\frac{n}{n-1}q}$ with $q$ the share of the odd sample in $\sum_i\lVert x_i-\bar x\rVert^2$.
# ```
#
# ```{admonition} Hint
# :class: dropdown tip
# $x_1-\nu = \frac{n}{n-1}(x_1-\bar x)$, and the total splits into $\sum_{i\ge2}\lVert x_i-\nu\rVert^2 + \frac{n-1}n\lVert x_1-\nu\rVert^2$.
# ```
#
# ```{solution} ex-11-equal
# :label: sol-11-equal
# :class: dropdown
# Let $T=\sum_i\lVert x_i-\bar x\rVert^2$ and $\lVert x_1-\bar x\rVert^2 = qT$. By the hint the others' sum is $T-\frac{n}{n-1}qT$ and the squared distance $\frac{n^2}{(n-1)^2}qT$; divide, with the factor $n-1$ of the mean. For equal distances $q=1/n$: $s^2 = \frac{n}{n-1}\big/\bigl(1-\frac1{n-1}\bigr) = \frac n{n-2}$.
# ```
#
# ```{exercise} When does a GELU network shrink?
# :label: ex-11-gelu
# *Medium, 25 minutes, with bnlib.* Use `activation_maps.activation_kernel("gelu", p, p, p)` to find the $\sigma^2$ above which the squared norm $p$ of a single sample grows without bound, and the one below which it shrinks to zero, without any norm. Compare with {numref}`fig-11-variance`.
# ```
#
# ```{admonition} Hint
# :class: dropdown tip
# Iterate $p\mapsto \sigma^2 V(p)$, and look at $V(p)/p$: it goes from $1/4$ at $p\to0$ to $1/2$ at $p\to\infty$. Is it monotone?
# ```
#
# ```{solution} ex-11-gelu
# :label: sol-11-gelu
# :class: dropdown
# With $r=p$ and $D = 1+2p$, {eq}`eq-11-gelu` gives $V(p)/p = \frac14+\frac1{2\pi}\arcsin\frac{p}{1+p}+\frac{1}{\pi\sqrt{1+2p}}\,\frac{p}{1+p}$, which rises from $1/4$ to $1/2$. So $p$ shrinks to zero from everywhere for $\sigma^2\le2$, grows without bound from
# everywhere for $\sigma^2\ge4$, and in between has an unstable fixed point: small samples shrink, large ones grow. That alone drives norms apart. Where the network is like ReLU, recentering takes a share of the squared norm
# besides, about $2/n$ beside an outlier and $1/\pi$ in a symmetric batch, so that the lower border moves up to about $2/(1-2/n)$ or $2/(1-1/\pi)$. The upper border stays: a small network is linear, and recentering takes nothing from a batch that is centered already.
# ```
#
# ```{exercise} A deeper, or a weaker, skip connection
# :label: ex-11-skip
# *Medium, 20 minutes, changes a parameter.* Run this chapter with `-y '{architectures: ["RC+NL residual=0.2", "RC+NL residual=0.5", "RC+NL residual=1"], depth: 2000, batch_sizes: [8, 32]}'`. Predict first: by what factor does the onset grow when the strength goes from 1 to 0.2?
# ```
#
# ```{admonition} Hint
# :class: dropdown tip
# To first order in $s^2$ a block moves the Gram matrix by $s^2(V(GKG)-K)$ up to scale: $s^2$ is a step of time.
# ```
#
# ```{solution} ex-11-skip
# :label: sol-11-skip
# :class: dropdown
# If time is $\log(1+s^2\gamma)$ a block, with $\gamma$ of order one the growth of the branch, the onset grows like $1/s^2$ for small $s$: about 25 times from 1 to 0.2 in the limit, less in fact, since $s=1$ is not small. The fluctuations that start the escape shrink with $s$ as well, which adds a logarithm.
# ```
#
# ```{exercise} Which normalization is between layer norm and batch norm?
# :label: ex-11-group
# *Open.* Group norm and instance norm are missing in the table. Add a stage to `bnlib.architecture_layers.stage` (an over which axes, a token), and a row to `bnlib.architectures.ARCHITECTURES`. Is the outlier a matter of *coupling the samples*, as the columns RC and layer norm suggest? What about a norm over pairs of samples?
# ```
#
# ```{admonition} Hint
# :class: dropdown tip
# What RC does to a large batch is to remove one direction in the space of samples. A norm over groups of $g$ samples removes $n/g$.
# ```
#
# ```{solution} ex-11-group
# :label: sol-11-group
# :class: dropdown
# We do not know. A prediction: recentering within groups of $g$ samples makes $G$ block-diagonal, the Gram matrix between groups is not recentered, and each group of $g\ge7$ can have an outlier of its own; the class "outlier" of this chapter's rule (one, and no second) will then not be found, although each group shows it.
# ```

# %% tags=["hide-input"]
run.glue("named-share", "named['share']")
for kind in ("line", "broken", "other"):
    run.glue(f"{kind}-count", f"named['counts']['{kind}']")
run.glue("theory-decided", "agreement['decided']")
run.glue("theory-agree", "agreement['agree']")
run.glue("theory-architectures", "agreement['architectures']")
run.glue("theory-by-chance", "agreement['by_chance']", optional=True)
run.finish()
