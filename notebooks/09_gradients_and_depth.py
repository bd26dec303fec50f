# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Gradients and depth: batch normalization makes gradients explode
#
# :::{admonition} In short
# :class: tip
# **Question.** How do gradients travel down a deep network with batch normalization at initialization, and does that decide how deep a
# network can be trained?
#
# **Answer.** At infinite width the squared gradient grows per layer by a factor that depends on the activation and the batch size alone:
# {glue:text}`growth-relu-16:.4f` for ReLU at sixteen samples, $\pi/(\pi-1) =$ {glue:text}`growth-limit:.4f` for large batches
# ({glue:text}`verdict-growth-relu-limit`), and more than one for every activation tried ({glue:text}`verdict-growth-every-activation`); the identity
# grows least ({glue:text}`verdict-growth-identity-least`). Theory, Monte Carlo and networks agree ({glue:text}`verdict-growth-three-ways`). The sentence
# that linear networks explode "at rate $B^{-2}$" is {glue:text}`verdict-linear-rate-as-printed`; the factor is $(n-2)/(n-3)$
# ({glue:text}`verdict-linear-rate-repaired`).
#
# On handwritten digits the depth that still trains is proportional to the predicted scale $1/\log\lambda$ ({glue:text}`verdict-depth-scale-proportional`; the reading as equality is {glue:text}`verdict-depth-scale-literal`),
# and the statement that networks deeper than about fifty layers do not train is {glue:text}`verdict-fifty-layers`. That a
# large $\varepsilon$ makes deep networks trainable is {glue:text}`verdict-epsilon-trains-deep`; that training stops above a critical $\varepsilon$, where the signal
# itself dies, {glue:text}`verdict-epsilon-critical`; that nearly linear activations help, {glue:text}`verdict-near-linear-trains`.
#
# **New work.** That the growth of the norm needs no convergence of the gradient's covariance, the floor that $\varepsilon$ cannot pass, the law at
# three samples, and the rates of networks with recentering alone or rescaling alone.
# :::
#
# The source of the claims is a summary of *A Mean Field Theory of Batch Normalization* {cite}`yang2019`; its batch size $B$ is our $n$. The full text was
# not at hand: every size and training set-up on this page is ours. Three kinds of statement are kept apart: *exact* (infinite width under gradient
# independence), *Monte Carlo* (averages over neurons or over layers of finite width) and *networks* (automatic differentiation). The criteria of the
# verdicts were written after pilot runs with other seeds than the seed of record.

# %% tags=["parameters", "hide-input"]
device = "auto"
seed = 0
results_dir = "build/runs"
batch_sizes = [4, 6, 8, 16, 32, 64]
activation_batch_size = 16
activations = ["identity", "leaky 0.5", "tanh 0.5", "tanh", "gelu"]
theory_activations = [
    "identity",
    "leaky 0.5",
    "tanh 0.5",
    "tanh",
    "sigmoid",
    "erf-like",
    "gelu",
    "silu",
    "relu",
    "sin",
    "abs",
    "square",
]
largest_batch = 1024
width = 512
layers = 9
draws = 16
neurons = 40000
half_batch_size = 16
half_table_sizes = [8, 16, 32, 64, 128]
epsilon_fractions = [0.1, 0.5]
independence_widths = [128, 512]
chains = 32
small_widths = [64, 256, 1024]
small_draws = 16
small_chains = 200
sample_means = 1000000
data = "digits"
data_folder = "data"
map_depths = [4, 8, 16, 24, 32, 64]
map_batch_sizes = [4, 8, 16, 64]
map_seeds = 3
map_steps = 100
map_width = 64
longer_factor = 3
sgd_rate = 0.1
adam_rate = 0.003
first_step_depth = 64
cure_depth = 40
epoch_depth = 10
epochs = [0, 3, 5, 10]
sweep_seeds = 8
sweep_steps = 44

# %% tags=["hide-input"]
from bnlib.gradient_parameters import activation_names, moment_batch_sizes
from bnlib.parameters import check, folder_name, integer, integers, number, numbers, one_of

parameters = check(
    globals(),
    batch_sizes=moment_batch_sizes,
    activation_batch_size=integer(minimum=6),
    activations=activation_names,
    theory_activations=activation_names,
    largest_batch=integer(minimum=8),
    width=integer(minimum=16),
    layers=integer(minimum=4),
    draws=integer(minimum=4),
    neurons=integer(minimum=100),
    half_batch_size=integer(minimum=7),
    half_table_sizes=integers(minimum=7),
    epsilon_fractions=numbers(0.01, 0.95),
    independence_widths=integers(minimum=8),
    chains=integer(minimum=4),
    small_widths=integers(minimum=4),
    small_draws=integer(minimum=4),
    small_chains=integer(minimum=10),
    sample_means=integer(minimum=4000),
    data=one_of("digits", "mnist", "fashion_mnist", "cifar10"),
    data_folder=folder_name,
    map_depths=integers(minimum=1),
    map_batch_sizes=moment_batch_sizes,
    map_seeds=integer(minimum=1),
    map_steps=integer(minimum=1),
    map_width=integer(minimum=4),
    longer_factor=integer(minimum=1),
    sgd_rate=number(minimum=1e-6),
    adam_rate=number(minimum=1e-6),
    first_step_depth=integer(minimum=4),
    cure_depth=integer(minimum=2),
    epoch_depth=integer(minimum=4),
    epochs=integers(minimum=0),
    sweep_seeds=integer(minimum=2),
    sweep_steps=integer(minimum=2),
)

# %% tags=["hide-input"]
import math

import numpy as np
import torch

from bnlib import data as data_sets
from bnlib import figures, gradient_figures, gradient_survey, gradients, records, trainability, trainability_survey
from bnlib.activations import activation
from bnlib.gegenbauer import expand, gradient_growth_by_degree
from bnlib.gradient_theory import (
    critical_epsilon,
    epsilon_state,
    growth_per_width_doubling,
    parsed_activation,
    sample_mean_convergence,
    tail_index,
)
from bnlib.half_normalization import outlier_start, recentered_relu_rates, recentered_relu_rates_at
from bnlib.mean_field import gradient_growth, linear_gradient_growth, relu_gradient_growth

run = records.start("09_gradients_and_depth", parameters)
relu = activation("relu")
widths = [parameters.width // 2, parameters.width]
sizes = {"widths": widths, "layers": parameters.layers, "draws": parameters.draws}

# %% [markdown]
# ## What is multiplied at every layer
#
# A layer takes the representation $X \in \mathbb R^{n\times d}$ of a batch to $H = XW$ (entries of $W$ of variance $\sigma^2/d$), normalizes every column $h$ of
# $H$ over the batch, $b = \sqrt n\, Gh/\lvert Gh\rvert$, and applies $\phi$ entry by entry. With $v = Gh/\lvert Gh\rvert$ and $D = \mathrm{Diag}(\phi'(b))$, a gradient $\delta$ with respect to
# $\phi(b)$ becomes
#
# $$ \delta_h = \frac{\sqrt n}{\lvert Gh\rvert}\, G\,(I - vv^{\mathsf T})\, D\,\delta $$ (eq-09-backward)
#
# with respect to $h$: recentering removes the mean of the gradient, rescaling its component along $v$ and brings in the factor $1/\lvert Gh\rvert$. The gradient with respect to
# $X$ is $\delta_H W^{\mathsf T}$. *Gradient independence* (appendix B of the source) is the assumption that this $W^{\mathsf T}$ may be replaced by an independent copy. Then each column
# of the gradient is, at infinite width, Gaussian over the batch with a covariance $\Pi$, and a layer maps $\Pi$ linearly to
# $\sigma^2\,\mathbb E[\delta_h\delta_h^{\mathsf T}]$.
#
# The forward pass is at its symmetric fixed point: the representation's covariance $\Sigma$ over the batch has $G\Sigma G = \mu G$, a column $h$ of pre-activations is Gaussian with covariance $\sigma^2\Sigma$, so that $v$ is uniform on the unit sphere of the
# hyperplane orthogonal to $\mathbf 1$ and $\lvert Gh\rvert^2/(\sigma^2\mu)$ is chi-square with $n-1$ degrees of freedom.
#
# ```{prf:theorem} The squared norm grows by one factor, from the first layer on
# :label: thm-09-one-factor
# Let $n \ge 4$, the forward covariance be at the symmetric fixed point, $\mathbb E\,\phi'(b_1)^2 < \infty$, and gradient independence hold. Whatever the covariance $\Pi$ of the gradient with $\Pi\mathbf 1 = 0$,
# one layer multiplies its trace, the expected squared norm of a column, by
#
# $$ \begin{gathered} \lambda = \frac{n\,t}{\mu\,(n-3)(n-1)}\,,\\ t = \mathbb E[\operatorname{tr}(GDGD) - v^{\mathsf T}DGDv]. \end{gathered} $$ (eq-09-lambda)
#
# In particular the factor does not depend on $\sigma^2$, and holds at every layer, not only in the limit of many layers.
# ```
#
# ```{prf:proof}
# By {eq}`eq-09-backward` the new trace is $\operatorname{tr}(\Pi M)$ with $M = \sigma^2\,\mathbb E[(n/\lvert Gh\rvert^2)\, D(I-vv^{\mathsf T})G(I-vv^{\mathsf T})D]$. The law of $h$ is invariant under
# permutations of the samples, so $M$ commutes with all permutation matrices: $M = aI + c\,\mathbf 1\mathbf 1^{\mathsf T}$. Since $\Pi\mathbf 1 = 0$, $\operatorname{tr}(\Pi M) = a\operatorname{tr}\Pi$. To find $a$ take $\Pi = G$:
# $a = \operatorname{tr}(GM)/(n-1)$. As $Gv = v$, $(I-vv^{\mathsf T})G(I-vv^{\mathsf T}) = G - vv^{\mathsf T}$. Length and direction of a Gaussian vector are independent, and $D$ depends on the direction
# only, so $\mathbb E[1/\chi^2_{n-1}] = 1/(n-3)$ factors out. Every $\delta_h$ satisfies $\mathbf 1^{\mathsf T}\delta_h = 0$, so the hypothesis on $\Pi$ holds from the second layer from the top on. The length
# $\lvert Gh\rvert^2 = \sigma^2\mu\,\chi^2$ cancels the factor $\sigma^2$.
# ```
#
# The source speaks of $\beta^{L+o(L)}$, a growth in the long run; under its own assumption the trace needs no long run. For ReLU the averages are elementary: $\mathbb E[D_1D_2] = J'/2$ and {eq}`eq-09-lambda` becomes
#
# $$ \begin{gathered} \lambda = \frac{n-2+J+J'}{(n-3)(1-J)}\longrightarrow\frac{\pi}{\pi-1},\\ \lambda_{\text{linear}} = \frac{n-2}{n-3}, \end{gathered} $$ (eq-09-closed)
#
# where $J$ is the ReLU cosine map of the notation page, at the cosine $-1/(n-1)$; for the identity $D = I$, $\operatorname{tr}G - 1 = n-2$ and $\mu = n/(n-1)$.
#
# ```{prf:theorem} The identity explodes least
# :label: thm-09-least
# For $n\ge4$ and any $\phi$ that is not constant on the normalized batch and has a weak derivative with $\mathbb E\,\phi'(b_1)^2<\infty$, $\lambda \ge (n-2)/(n-3)$, with equality exactly for affine $\phi$. So $\lambda > 1$ always.
# ```
#
# ```{prf:proof}
# Let $F(v) = G\,(\phi(\sqrt n v_1),\dots,\phi(\sqrt n v_n))^{\mathsf T}$. Its components are functions on the unit sphere of dimension $n-2$, and $\mathbb E\lvert F\rvert^2 = (n-1)\mu$. The derivative of $F$ along the sphere is
# $\sqrt n\,GD(G-vv^{\mathsf T})$, whose squared Frobenius norm is $n[\operatorname{tr}(GDGD)-v^{\mathsf T}DGDv]$. So $\lambda = \mathbb E\lvert\nabla F\rvert^2/((n-3)\,\mathbb E\lvert F\rvert^2)$. The sphere's Laplace operator has the eigenvalues
# $l(l+n-3)$, hence $\mathbb E\lvert\nabla F\rvert^2 = \sum_l l(l+n-3)w_l$ and $\mathbb E\lvert F\rvert^2 = \sum_l w_l$ with weights $w_l\ge0$ of the degrees, and $w_0 = 0$: the mean of the $i$-th component is $\mathbb E\phi(b_i)$ less the average over $i$, which is zero by symmetry.
# The least eigenvalue, at $l = 1$, is $n-2$. Equality means that $F$ is of degree one. Degree $l$ of $F$ is $a_l\,G\,(P_l(\langle u_i,v\rangle))_i$ up to a constant, with unit vectors $u_i$ at the mutual cosine $-1/(n-1)$, and
# $\mathbb E$ of its square is proportional to $a_l^2(1-P_l(-1/(n-1)))$, where $\lvert P_l(t)\rvert<1$ inside $(-1,1)$ for $l \ge 1$ and $n\ge4$. So $a_l = 0$ for $l\ge2$: $\phi$ is affine on the range of $b_1$.
# ```
#
# This is the source's statement of §G.1.2. The table gives $\lambda$ twice, by integration over two angles and by the expansion in degrees.

# %% tags=["hide-input"]
growth_relu = {n: relu_gradient_growth(n) for n in parameters.batch_sizes}
run.record("gradient_growth", growth_relu)
run.record("gradient_growth_linear", {n: linear_gradient_growth(n) for n in parameters.batch_sizes})
run.record("gradient_growth_limit", math.pi / (math.pi - 1))
run.record("growth_16", relu_gradient_growth(16))
large = [int(n) for n in np.unique(np.geomspace(4, parameters.largest_batch, 30).astype(int))]
run.record(
    "growth_by_size",
    [
        {"n": n, "relu": relu_gradient_growth(n), "linear": linear_gradient_growth(n), "printed": float(n) ** -2}
        for n in large
    ],
)
m = parameters.activation_batch_size
table = []
for name in parameters.theory_activations:
    phi = parsed_activation(name)
    expansion = expand(phi, m, degree=60)
    table.append(
        {
            "activation": name,
            "growth": gradient_growth(phi, m),
            "by_degree": gradient_growth_by_degree(expansion),
            "missing": expansion.missing,
            "linear": name == "identity",
            "scale": 1 / math.log(gradient_growth(phi, m)),
        }
    )
run.record("activation_table", table)
run.record("linear_growth_there", linear_gradient_growth(m))
run.glue("growth-relu-16", "growth_16")
run.glue("growth-limit", "gradient_growth_limit")
figures.table(
    [
        [row["activation"], row["growth"], row["by_degree"], row["missing"], row["scale"]]
        for row in sorted(table, key=lambda row: row["growth"])
    ],
    header=["activation", "λ, integration", "λ, degrees up to 60", "mean square beyond them", "depth scale 1/log λ"],
    caption=f"Exact growth of the squared gradient per layer at batch size {m}; with a kink the expansion in degrees converges slowly, from below.",
)

# %% [markdown]
# ## Three ways: theory, Monte Carlo, networks
#
# *Monte Carlo* draws pre-activations of single neurons at the fixed point and averages the trace of {eq}`eq-09-backward` by plain sums. *Networks* are differentiated by
# torch: a Gaussian batch, ten or so layers with Gaussian weights, a loss that is linear in the last representation, and the ratio of the mean squared gradient norms at the lowest (but one) and
# the highest pre-activation, per layer. Nothing is assumed about independence there. Networks have a bias of order (batch size)/width; they are run at two widths, and the column *extrapolated* removes what is
# proportional to 1/width. Standard errors are over networks; at fewer than six samples a neuron's factor has no variance, so no standard error exists and nothing is compared.

# %% tags=["hide-input"]
cases = [("relu", n) for n in parameters.batch_sizes if n >= 6] + [
    ("identity", n) for n in parameters.batch_sizes if n >= 6
]
cases += [(name, m) for name in parameters.activations if (name, m) not in cases]
options = {**sizes, "samples": parameters.neurons, "generator": run.generator}
bn_rows = gradient_survey.activation_rows(cases, **options)
epsilons = [(n, fraction * critical_epsilon(relu, n)) for n in (8, 16) for fraction in parameters.epsilon_fractions]
eps_rows = [
    {**row, "fraction": row["epsilon"] / critical_epsilon(relu, row["n"])}
    for row in gradient_survey.epsilon_rows(epsilons, **options)
]
half_rows = gradient_survey.half_rows([parameters.half_batch_size], **options)
comparison = bn_rows + eps_rows + half_rows
run.record("bn_rows", bn_rows)
run.record("eps_rows", eps_rows)
run.record("half_rows", half_rows)
scores = [row["network_z"] for row in comparison] + [
    row["monte_carlo_z"] for row in comparison if row["monte_carlo_z"] is not None
]
run.record("z_scores", scores)
run.glue("z-largest", "max([abs(z) for z in z_scores])")
run.glue("z-count", "len(z_scores)")
run.glue("quantities", "len(bn_rows) + len(eps_rows) + len(half_rows)")
measured = {
    row["n"]: {
        "mean": row["wide"],
        "standard_error": row["wide_error"],
        "width": parameters.width,
        "layers": parameters.layers,
        "n_seeds": parameters.draws,
    }
    for row in bn_rows
    if row["activation"] == "relu"
}
run.record("gradient_growth_measured", {n: measured.get(n) for n in parameters.batch_sizes})
figures.table(
    [
        [
            row["quantity"],
            row["n"],
            row["theory"],
            row["monte_carlo"],
            row["monte_carlo_error"],
            row["monte_carlo_z"],
            row["wide"],
            row["network"],
            row["network_error"],
            row["network_z"],
        ]
        for row in comparison
    ],
    header=[
        "quantity",
        "n",
        "theory",
        "Monte Carlo",
        "s.e.",
        "z",
        f"networks, width {parameters.width}",
        "extrapolated",
        "s.e.",
        "z",
    ],
    caption="Growth per layer of squared gradients (and of one forward scale): theory at infinite width, Monte Carlo under gradient independence, networks. s.e.: standard error; z: difference from theory in standard errors.",
)

# %% [markdown]
# The largest of the {glue:text}`z-count` scores for {glue:text}`quantities` quantities is {glue:text}`z-largest:.2f`. The lower rows belong to the sections on $\varepsilon$ and on half of batch normalization.

# %% mystnb={"figure": {"caption": "Growth of the squared gradient norm per layer against the batch size: closed forms as curves, networks (extrapolated to infinite width, bars of two standard errors) as marks. Look where the two curves end.", "name": "fig-09-growth"}, "image": {"alt": "Two falling curves over the batch size, ReLU above linear, with marks of networks and a dotted line at pi over pi minus one."}} tags=["hide-input"]
figure, axes = figures.new_figure(height=3.6)
gradient_figures.growth_by_batch(axes[0, 0], bn_rows, parameters.largest_batch)
figures.show(figure)

# %% mystnb={"figure": {"caption": "The same factor for several activations at one batch size: theory as bars that begin at 1, networks as dots with bars of two standard errors.", "name": "fig-09-activations"}, "image": {"alt": "Horizontal bars of growth factors by activation, sorted, all beginning at one, with dots for networks."}} tags=["hide-input"]
figure, axes = figures.new_figure(height=3.8)
gradient_figures.growth_by_activation(axes[0, 0], table, [row for row in bn_rows if row["n"] == m])
figures.show(figure)

# %% [markdown]
# ### "Linear networks explode at rate $B^{-2}$"
#
# So the summary prints it (§3.1.2). Two readings are possible. If $B^{-2}$ is the factor per layer, the gradient *vanishes*, by a factor far below one. If it is what the factor exceeds one by, then at large batches
# $\lambda_{\text{linear}} - 1$ must fall with the square of the batch size; by {eq}`eq-09-closed` it is $1/(n-3)$, and its logarithmic slope is {glue:text}`linear-slope:.3f` over the last doubling. The verdict on the sentence in both readings is
# {glue:text}`verdict-linear-rate-as-printed`. What stands behind is most likely $(B-2)/(B-3)$, its typesetting lost: {glue:text}`verdict-linear-rate-repaired`.
#
# ### Weights, and their variance
#
# The gradient with respect to $W$ at a layer is $X^{\mathsf T}\delta_H$, with squared norm $\operatorname{tr}(XX^{\mathsf T}\,\delta_H\delta_H^{\mathsf T})$: the pairing of the representation's Gram matrix with the gradient's covariance. At the fixed point the former is
# $d\,(\mu G + \text{const}\,\mathbf 1\mathbf 1^{\mathsf T})$ and $\delta_H^{\mathsf T}\mathbf 1 = 0$, so it is $d\mu$ times the hidden gradient's squared norm: the same factor $\lambda$. The column of the results file `weights` is the growth of one over the other in each
# network; and the same networks at other weight variances $\sigma^2$ tell whether tuning the initialization can help.

# %% tags=["hide-input"]
x = gradient_survey.batch_in_state(np.eye(m), 2, 64, run.generator("variance"))
variances = [0.5, 1.0, 2.0, 8.0]
by_variance = [
    gradients.growth_per_layer(
        gradients.network_gradients(
            x,
            64,
            parameters.layers,
            "relu",
            generator=torch.Generator(parameters.device).manual_seed(parameters.seed),
            weight_variance=value,
        ).hidden
    ).mean
    for value in variances
]
run.record("growth_by_variance", dict(zip(map(str, variances), by_variance, strict=True)))
run.record("variance_spread", max(by_variance) / min(by_variance) - 1)
run.record(
    "linear_slope",
    math.log(
        (linear_gradient_growth(parameters.largest_batch) - 1)
        / (linear_gradient_growth(parameters.largest_batch // 2) - 1)
    )
    / math.log(2),
)
run.glue("linear-slope", "linear_slope")
run.judge(
    "growth-every-activation",
    "growth-identity-least",
    "growth-relu-limit",
    "growth-three-ways",
    "linear-rate-as-printed",
    "linear-rate-repaired",
    "linear-best-infinite-batch",
    "weight-gradients-same-rate",
    "weight-variance-no-cure",
)

# %% [markdown]
# ### How good is gradient independence at finite width?
#
# Compare the networks with networks of the *same* width whose backward weights are independent copies. The forward noise is then the same, and only the assumption differs.

# %% tags=["hide-input"]
independence = gradient_survey.independence_rows(
    [(n, w) for n in (16, 64) for w in parameters.independence_widths],
    parameters.layers,
    parameters.draws,
    parameters.chains,
    run.generator,
)
run.record("independence", independence)
figures.table(
    [
        [
            row["n"],
            row["width"],
            row["n"] / row["width"],
            row["network"],
            row["independent"],
            row["difference"],
            row["error"],
            row["z"],
        ]
        for row in independence
    ],
    header=["n", "width", "n / width", "networks", "independent backward weights", "difference", "s.e.", "z"],
    caption="Growth of the squared gradient per layer in ReLU networks of finite width, with their own and with independent backward weights.",
)
run.judge("independence-at-finite-width")

# %% [markdown]
# ## Two, three and four samples
#
# ```{prf:theorem} Two samples: gradients vanish at once
# :label: thm-09-two
# At $n = 2$, without $\varepsilon$, the gradient with respect to the pre-activations of every layer is exactly zero, in every network and for every activation. With $\varepsilon>0$ a layer multiplies what arrives along $v$ by $\varepsilon/(\lvert Gh\rvert^2/2+\varepsilon)^{3/2}$.
# ```
#
# ```{prf:proof}
# The centered hyperplane has one dimension, so $G = vv^{\mathsf T}$ and $G(I-vv^{\mathsf T}) = 0$ in {eq}`eq-09-backward`: $b$ is $\pm(1,-1)$ and does not move with $h$. With $s^2 = \lvert Gh\rvert^2/n+\varepsilon$ the Jacobian is
# $G(I - r^2vv^{\mathsf T})/s$, $r^2 = \lvert Gh\rvert^2/(ns^2)$, and $1-r^2 = \varepsilon/s^2$.
# ```
#
# **Three samples.** $\lvert Gh\rvert^2/(\sigma^2\mu)$ is chi-square with two degrees of freedom, and $\mathbb E[1/\chi^2_2] = \infty$: one layer has an infinite mean growth at infinite width. At width $d$ a layer averages $d$ factors with
# $P(\text{factor}>t)\approx a/t$, $a = \frac{n}{2\mu(n-1)}\mathbb E[\operatorname{tr}(GDGD) - v^{\mathsf T}DGDv]$, because $\chi^2_2$ has density $1/2$ at zero and is independent of the bounded bracket; the next term is of order $t^{-2}$. The mean of $d$ such numbers is $a\log d + O(1)$ in probability. So the *typical* growth rises with the
# width, by $a\log 2 =$ {glue:text}`doubling-theory:.3f` at each doubling for ReLU, without bound.
#
# **Four samples.** The mean exists, $\lambda =$ {glue:text}`growth-four:.3f`, but the tail index of a factor is {glue:text}`tail-four:.1f`, so there is no variance and a sample mean of $N$ factors comes closer only like $N^{-1/3}$: the median of sample
# means lies below the expectation. A layer of width $d$ is such a sample.

# %% tags=["hide-input"]
run.record("growth_four", relu_gradient_growth(4))
run.record("tail_four", tail_index(4))
run.glue("growth-four", "growth_four")
run.glue("tail-four", "tail_four")
sample_sizes = tuple(size for size in (30, 100, 300, 1000, 3000, 10000, 30000) if 20 * size <= parameters.sample_means)
means = sample_mean_convergence(
    relu, 4, sample_sizes, parameters.sample_means, gradient_survey.numpy_stream(run.generator("four"))
)
run.record("four_means", means)
known = [row for row in means if relu_gradient_growth(4) - row["median"] > 0 and row["samples"] >= 40]
exponent = (
    np.polyfit(
        np.log([row["size"] for row in known]), np.log([relu_gradient_growth(4) - row["median"] for row in known]), 1
    )[0]
    if len(known) > 2
    else None
)
run.record("four_exponent", exponent)
small = gradient_survey.small_batch_rows(
    [3, 4], parameters.small_widths, parameters.layers, parameters.small_draws, parameters.small_chains, run.generator
)
run.record("small_batches", small)
three = [row for row in small if row["n"] == 3]
doublings = math.log2(three[-1]["width"] / three[0]["width"])
run.record("doubling_theory", growth_per_width_doubling(relu))
run.record("doubling_median", (three[-1]["median"] - three[0]["median"]) / doublings)
run.record("doubling_median_error", math.hypot(three[-1]["median_error"], three[0]["median_error"]) / doublings)
run.glue("doubling-theory", "doubling_theory")
run.glue("doubling-median", "doubling_median")
run.glue("doubling-error", "doubling_median_error")
two = gradients.network_gradients(
    gradient_survey.batch_in_state(np.eye(2), 4, 64, run.generator("two")),
    64,
    4,
    "relu",
    generator=run.generator("two weights"),
)
run.record("two_samples", float(two.hidden[:, :-1].max()))
run.record("two_samples_top", float(two.hidden[:, -1].max()))
run.glue("two-norm", "two_samples")

# %% mystnb={"figure": {"caption": "Above: sample means of one neuron's growth factor at four samples, against how many neurons are averaged; the band holds the middle half. Below: growth of a layer at three samples against the width, bars of two standard errors. Compare the marks with the dotted line's slope.", "name": "fig-09-small"}, "image": {"alt": "Two panels: medians of sample means rising towards a dotted line, and growth factors rising with the logarithm of the width."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, height=3.1)
gradient_figures.small_batches(axes[:, 0], means, relu_gradient_growth(4), small, growth_per_width_doubling(relu))
figures.show(figure)

# %% [markdown]
# At three samples the median rises by {glue:text}`doubling-median:.2f` ± {glue:text}`doubling-error:.2f` a doubling of the width. (The other marks average logarithms over networks, another typical value: only its rise is to be compared.) At two samples the largest squared norm in networks is {glue:text}`two-norm:.1e` (in float64; a gradient of exactly zero comes out as rounding of numbers of order one).

# %% tags=["hide-input"]
run.judge(
    "two-samples-vanish",
    "four-samples-explode",
    "three-samples-explode",
    "three-samples-width-law",
    "four-samples-slow-mean",
)

# %% [markdown]
# ## Epsilon
#
# With $s^2 = \lvert Gh\rvert^2/n+\varepsilon$, $r^2 = \lvert Gh\rvert^2/(ns^2)$, the same proof as for {prf:ref}`thm-09-one-factor` gives
#
# $$ \lambda(\varepsilon) = \frac{\sigma^2}{n-1}\,\mathbb E\Bigl[\frac{\operatorname{tr}(GDGD) - (2r^2-r^4)\,v^{\mathsf T}DGDv}{s^2}\Bigr]. $$ (eq-09-epsilon)
#
# Now the scale matters. Write $m$ for the centered covariance of the *pre-activations* ($\lvert Gh\rvert^2 = m\chi^2$) and $\mu_1$ for the $\mu$ without $\varepsilon$. For an activation of degree one $m$ solves $m = \sigma^2\mu_1\,\mathbb E[r^2]$.
#
# ```{prf:theorem} What epsilon cannot do
# :label: thm-09-epsilon
# Let $\phi$ be positively homogeneous of degree one, and $\varepsilon_c = \sigma^2\mu_1(n-1)/n$.
# (i) A fixed point $m>0$ exists exactly for $\varepsilon<\varepsilon_c$; it is unique. For $\varepsilon \ge\varepsilon_c$ the signal dies: $m$ falls to $0$, for $\varepsilon>\varepsilon_c$ by the factor $\varepsilon_c/\varepsilon$ per layer in the end.
# (ii) For $\varepsilon\ge\varepsilon_c$ the growth of the gradient in that limit, divided by the signal's factor, is
# $\lambda_0 = \mathbb E\operatorname{tr}(GDGD)\,n/((n-1)^2\mu_1)$, whatever $\varepsilon$ and $\sigma^2$; for ReLU $\lambda_0 = (n-1+J')/((n-1)(1-J)) > 1$.
# (iii) As $n\to\infty$, $\lambda(\varepsilon)$ at fixed $\varepsilon<\varepsilon_c$ tends to the same limit as without $\varepsilon$, for ReLU $\pi/(\pi-1)$.
# ```
#
# ```{prf:proof}
# (i) The equation is $1 = \sigma^2\mu_1\,\mathbb E[\chi^2/(m\chi^2+n\varepsilon)]$, whose right side falls strictly in $m$ from $\sigma^2\mu_1(n-1)/(n\varepsilon) = \varepsilon_c/\varepsilon$ to $0$. Where it is below one for all $m > 0$, the map $m\mapsto\sigma^2\mu_1\mathbb E[r^2]$
# lies below the diagonal and, being continuous and increasing, iterates to $0$, with slope $\varepsilon_c/\varepsilon$ there.
# (ii) At $m\to0$, $s^2\to\varepsilon$ and $r^2\to0$ in {eq}`eq-09-epsilon`, $D$ unchanged: $\lambda = \sigma^2\,\mathbb E\operatorname{tr}(GDGD)/((n-1)\varepsilon)$; divide by $\varepsilon_c/\varepsilon$. For ReLU $\mathbb E\operatorname{tr}(GDGD) = \frac{n-1}{2n}(n-1+J')$ and $\mu_1 = (1-J)/2$. It exceeds one because $J>0$ at the cosine $-1/(n-1)$.
# (iii) $\chi^2/n\to1$ in probability and all factors are bounded for $\varepsilon>0$, so the equation for $m$ tends to $1 = \sigma^2\mu_1/(m+\varepsilon)$, monotone in $m$, and its root with it: $s^2\to m+\varepsilon = \sigma^2\mu_1$, whatever $\varepsilon$. Further $v^{\mathsf T}DGDv\le\lvert\phi'\rvert_\infty^2$ and $\operatorname{tr}(GDGD) = (1-\tfrac2n)\sum_iD_i^2+\tfrac1{n^2}(\sum_iD_i)^2$, so after division by $n-1$ only $\mathbb E\,\phi'(b_1)^2$ is left.
# So $\lambda\to\mathbb E[\phi'(b_1)^2]/\mu_1$, in which $\varepsilon$ does not occur.
# ```
#
# So in large batches an $\varepsilon$ below $\varepsilon_c$ does nothing at all to the explosion of such networks: the fixed point shrinks until mean square plus $\varepsilon$ is what it was. What $\varepsilon$ does in small batches is to cut the tail of $1/\lvert Gh\rvert^2$.
# Above $\varepsilon_c$ the gradient may shrink, but the signal shrinks faster.

# %% tags=["hide-input"]
eps_curve = []
for n in (8, 16, 64):
    critical = critical_epsilon(relu, n)
    for fraction in np.linspace(0, 2, 33):
        state = epsilon_state(relu, n, float(fraction * critical))
        signal = min(state.signal, 1.0)
        eps_curve.append(
            {
                "n": n,
                "fraction": float(fraction),
                "epsilon": state.epsilon,
                "growth": state.gradient,
                "without": relu_gradient_growth(n) + 1e-9,
                "signal": signal,
                "relative": state.gradient / signal,
            }
        )
run.record("epsilon_curve", eps_curve)
run.record("epsilon_floor", {n: recentered_relu_rates(n).relative for n in (8, 16, 64)})
run.record("epsilon_critical", {n: critical_epsilon(relu, n) for n in (8, 16, 64)})
run.record("epsilon_default_growth", epsilon_state(relu, 16, 1e-5).gradient)
run.glue("critical-64", "epsilon_critical['64']")

# %% mystnb={"figure": {"caption": "Growth of the squared gradient per layer in ReLU networks (thick), and divided by what the squared signal is multiplied by (thin; equal where the signal keeps its size), against epsilon over its critical value. Marks: networks, bars of two standard errors.", "name": "fig-09-epsilon"}, "image": {"alt": "Falling curves of growth against epsilon for three batch sizes, with thin curves that become flat beyond the critical epsilon."}} tags=["hide-input"]
figure, axes = figures.new_figure(height=3.6)
gradient_figures.epsilon_curves(axes[0, 0], eps_curve, eps_rows)
figures.show(figure)

# %% tags=["hide-input"]
run.judge("epsilon-ameliorates", "epsilon-floor")

# %% [markdown]
# ## Half of batch normalization
#
# **Recentering alone.** Without rescaling the scale is free, and what counts is the gradient relative to the forward scale. In the symmetric state the backward map is $\Pi\mapsto\sigma^2\,G(\Pi\circ A)G$ with $A_{ij}$ the probability that samples $i$ and $j$ are both active. The squared gradient is multiplied by
# $\sigma^2(n-1+J')/(2n)$ and the squared centered signal by $\sigma^2(n-1)(1-J)/(2n)$: with He's variance the gradient hardly changes while the signal *shrinks*, and the ratio is $\lambda_0$ of {prf:ref}`thm-09-epsilon`, which tends to
# $\pi/(\pi-1)$ as well. Batch normalization does not create the explosion of the symmetric state; it makes visible what recentering does, by undoing the shrinking. (The same at infinite $\varepsilon$.)
#
# In the **outlier state** of chapter 7 the same maps are iterated from a batch with one long sample. The claim that there both nearly keep pace: {glue:text}`verdict-outlier-state-tame`.
#
# **Rescaling alone** (by the root mean square) keeps a component of the gradient along $\mathbf 1$; the map of $\Pi = aI + c\mathbf 1\mathbf 1^{\mathsf T}$ is a $2\times2$ matrix, averaged here over draws (the only theory on this page with a standard error).

# %% tags=["hide-input"]
half_table = []
for n in parameters.half_table_sizes:
    symmetric, outlier = recentered_relu_rates(n), recentered_relu_rates_at(outlier_start(n))
    half_table.append(
        {
            "n": n,
            "full": relu_gradient_growth(n),
            "forward": symmetric.forward,
            "gradient": symmetric.gradient,
            "relative": symmetric.relative,
            "outlier_forward": outlier.forward,
            "outlier_gradient": outlier.gradient,
            "outlier_relative": outlier.relative,
        }
    )
run.record("half_table", half_table)
figures.table(
    [
        [
            row["n"],
            row["full"],
            row["forward"],
            row["gradient"],
            row["relative"],
            row["outlier_forward"],
            row["outlier_gradient"],
            row["outlier_relative"],
            row["n"] * (row["outlier_relative"] - 1),
        ]
        for row in half_table
    ],
    header=[
        "n",
        "RC+RS",
        "RC: signal",
        "RC: gradient",
        "RC: ratio",
        "outlier: signal",
        "outlier: gradient",
        "outlier: ratio",
        "n (ratio − 1)",
    ],
    caption="ReLU, weight variance 2: multipliers per layer of squared norms at infinite width, full batch norm against recentering alone in its symmetric and its outlier state.",
)
run.judge("recentering-alone-explodes", "outlier-state-tame", "half-norm-networks")

# %% [markdown]
# ## Which networks train?
#
# The gradient at the lowest layer of a network of depth $L$ is about $\lambda^{L/2}$ times that at the top, so depth is measured in units of $\xi = 1/\log\lambda$. Networks of ReLU layers with batch normalization are trained on the digits for
# a fixed number of steps by plain SGD and by Adam; accuracy is on held-out samples in batches of the training's size. A network whose loss becomes NaN or infinite counts as accuracy zero here and is counted below. With a fixed number of steps a small batch sees fewer samples, so each batch size is
# compared with its own shallowest network: the *trainable depth* is where accuracy has fallen half-way from there to guessing.

# %% tags=["hide-input"]
loader = {
    "digits": data_sets.digits,
    "mnist": lambda: data_sets.mnist(parameters.data_folder),
    "fashion_mnist": lambda: data_sets.fashion_mnist(parameters.data_folder),
    "cifar10": lambda: data_sets.cifar10(parameters.data_folder),
}[parameters.data]
split = trainability_survey.split_data(loader(), 0.8, run.generator("split"))
shared = {"width": parameters.map_width, "steps": parameters.map_steps, "networks": parameters.map_seeds}
settings = {
    "sgd": trainability.Setting(learning_rate=parameters.sgd_rate),
    "adam": trainability.Setting(optimizer="adam", learning_rate=parameters.adam_rate),
}
cells = []
for optimizer, setting in settings.items():
    for depth in parameters.map_depths:
        for n in parameters.map_batch_sizes:
            stream = run.generator("map", optimizer, depth, n)
            found = trainability_survey.train_once(split, setting, depth, n, generator=stream, **shared)
            cells.append(
                {"optimizer": optimizer, "depth": depth, "batch_size": n, **trainability_survey.summary(*found)}
            )
run.record("trainability", cells)
run.record("diverged", sum(cell["diverged"] for cell in cells))
run.record("trained_networks", len(cells) * parameters.map_seeds)
scales = {n: 1 / math.log(relu_gradient_growth(n)) for n in parameters.map_batch_sizes}
run.record("depth_scales", scales)
limits = []
for optimizer in settings:
    for n in parameters.map_batch_sizes:
        accuracies = [
            next(c["accuracy"] for c in cells if (c["optimizer"], c["depth"], c["batch_size"]) == (optimizer, depth, n))
            for depth in parameters.map_depths
        ]
        depth = trainability_survey.trainable_depth(parameters.map_depths, accuracies)
        limits.append(
            {
                "optimizer": optimizer,
                "batch_size": n,
                "scale": scales[n],
                "depth": depth,
                "ratio": None if depth is None else depth / scales[n],
            }
        )
run.record("trainable_depths", limits)
ratios = [row["ratio"] for row in limits if row["ratio"] is not None]
factor = float(np.median(ratios)) if ratios else None
run.record("depth_ratios", ratios)
run.record("depth_factor", factor)
run.glue("diverged", "diverged")
run.glue("trained", "trained_networks")
deepest = max(parameters.map_depths)
longer = []
for optimizer, setting in list(settings.items())[:1]:
    n = max(parameters.map_batch_sizes)
    found = trainability_survey.train_once(
        split,
        setting,
        deepest,
        n,
        generator=run.generator("longer", optimizer),
        **{**shared, "steps": parameters.longer_factor * parameters.map_steps},
    )
    longer.append(
        {
            "optimizer": optimizer,
            "depth": deepest,
            "batch_size": n,
            "steps": parameters.longer_factor * parameters.map_steps,
            **trainability_survey.summary(*found),
        }
    )
run.record("longer", longer)
run.glue("longer-accuracy", "longer[0]['accuracy']")
run.glue("longer-steps", "longer[0]['steps']")
run.glue("longer-depth", "longer[0]['depth']")

# %% mystnb={"figure": {"caption": "Mean accuracy of ReLU networks with batch normalization on held-out digits, over depth and batch size, after the same number of steps of SGD (above) and Adam (below). The short bar in each column is at the predicted scale times one common factor, the median of the measured ratios.", "name": "fig-09-map"}, "image": {"alt": "Two colored tables of accuracy by depth and batch size, bright at the top, with a short bar in each column, lower from left to right."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, height=3.5)
for index, (optimizer, title) in enumerate((("sgd", "SGD"), ("adam", "Adam"))):
    chosen = [cell for cell in cells if cell["optimizer"] == optimizer]
    gradient_figures.trainability_map(axes[index, 0], chosen, scales, factor or 1.0, title)
figures.show(figure)

# %% tags=["hide-input"]
figures.table(
    [[row["optimizer"], row["batch_size"], row["scale"], row["depth"], row["ratio"]] for row in limits],
    header=["optimizer", "batch size", "ξ = 1/log λ", "trainable depth", "ratio"],
    caption="Trainable depth (accuracy half-way down to guessing, interpolated) over the predicted scale.",
)
run.judge("depth-scale-proportional", "depth-scale-literal", "fifty-layers")

# %% [markdown]
# Of {glue:text}`trained` networks {glue:text}`diverged` ended with a loss that is not a number. With {glue:text}`longer-steps` steps of SGD, networks of {glue:text}`longer-depth` layers at the largest batch reach an accuracy of
# {glue:text}`longer-accuracy:.2f`.
#
# ## Cures: epsilon and nearly linear activations
#
# The source's figure 5 lets $\varepsilon$ grow, $\gamma$ fall (tanh) and $\beta$ rise (ReLU). For the theory, $\gamma$ makes $\phi(x) = \tanh(\gamma x)$, nearly linear for small $\gamma$, and $\beta$ makes $\phi(x) = \max(x+\beta,0)$. A small signal sees the slope of $\phi$ at zero: 1 for $\beta>0$, so then
# $\varepsilon_c = \sigma^2$, against {glue:text}`critical-64:.3f` for ReLU without shift at 64 samples ($\sigma^2 = 2$).

# %% tags=["hide-input"]
n = max(parameters.map_batch_sizes)
cure_eps = []
for shift, critical in ((0.0, critical_epsilon(relu, n)), (1.0, 2.0)):
    for fraction in (1e-5, 0.6, 0.9, 1.5, 3.0):
        setting = trainability.Setting(learning_rate=parameters.sgd_rate, shift=shift, epsilon=fraction * critical)
        found = trainability_survey.train_once(
            split,
            setting,
            parameters.cure_depth,
            n,
            generator=run.generator("cure", "epsilon", shift, fraction),
            **shared,
        )
        cure_eps.append(
            {
                "shift": shift,
                "epsilon": fraction * critical,
                "fraction": fraction,
                "critical": critical,
                **trainability_survey.summary(*found),
            }
        )
run.record("cure_epsilon", cure_eps)
cure_other = []
for family, names in (
    ("tanh, falling gain", ["tanh", "tanh 0.5", "tanh 0.2"]),
    ("leaky ReLU, rising slope", ["relu", "leaky 0.25", "leaky 0.5", "leaky 0.75"]),
):
    for name in names:
        setting = trainability.Setting(learning_rate=parameters.sgd_rate, activation=name)
        found = trainability_survey.train_once(
            split, setting, parameters.cure_depth, n, generator=run.generator("cure", name), **shared
        )
        growth = gradient_growth(parsed_activation(name), n)
        cure_other.append(
            {
                "family": family,
                "activation": name,
                "growth": growth,
                "depth_in_scales": parameters.cure_depth * math.log(growth),
                **trainability_survey.summary(*found),
            }
        )
run.record("cure_activation", cure_other)
run.record("cure_depth", parameters.cure_depth)

# %% mystnb={"figure": {"caption": "Accuracy of deep networks (large marks: mean over networks; small dots: each network) against epsilon, for two initial shifts with the predicted critical epsilon (above), and against the predicted growth of the gradient for nearly linear activations (below).", "name": "fig-09-cures"}, "image": {"alt": "Two panels of accuracy: against epsilon on a logarithmic axis with dotted vertical lines, and against the growth factor for two families of activations."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, height=3.1)
gradient_figures.cures(axes[:, 0], cure_eps, cure_other)
figures.show(figure)

# %% tags=["hide-input"]
run.judge("near-linear-trains", "epsilon-trains-deep", "epsilon-critical")

# %% [markdown]
# ## The first step
#
# ```{prf:theorem} A step can only lengthen the weights
# :label: thm-09-first-step
# Without $\varepsilon$ the loss does not change when the weights of one neuron before batch normalization are multiplied by a positive number. Hence the gradient $g$ with respect to them is orthogonal to them, a step $w' = w-\eta g$ gives $\lvert w'\rvert^2 = \lvert w\rvert^2+\eta^2\lvert g\rvert^2$, and at $t w$ the
# gradient is $g/t$.
# ```
#
# ```{prf:proof}
# Batch normalization of $Xw$ is that of $tXw$, $t>0$. Differentiate the constant function $t\mapsto\ell(tw)$ at $t = 1$: $\langle w,g\rangle = 0$; Pythagoras gives the norm. Differentiating $\ell(tw) = \ell(w)$ with respect to $w$: $t\,\nabla\ell(tw) = \nabla\ell(w)$.
# ```
#
# So where $\eta\lvert g\rvert\gg\lvert w\rvert$, that is in the lower layers of a deep network, the first step makes weights of length $\eta\lvert g\rvert$, growing exponentially towards the input, and divides later gradients there by as much again.

# %% tags=["hide-input"]
first_setting = trainability.Setting(learning_rate=parameters.sgd_rate)
outcome, _ = trainability_survey.train_once(
    split,
    first_setting,
    parameters.first_step_depth,
    n,
    parameters.map_width,
    10,
    8,
    run.generator("first step"),
    (0, 1, 2, 10),
)
first = trainability_survey.equilibration(outcome)
run.record("first_step", first)
run.record("predicted_slope", -math.log(relu_gradient_growth(n)) / 2)
run.glue("slope-before", "first_step[0]['slope']")
run.glue("slope-predicted", "predicted_slope")
run.glue("slope-after", "first_step[1]['slope']")
run.glue("relative-after", "first_step[1]['relative_slope']")

# %% mystnb={"figure": {"caption": "Norm of the weights' gradient (above), of the weights (middle) and their ratio (below) layer by layer, at the start and after some steps of SGD; geometric means over eight networks.", "name": "fig-09-first"}, "image": {"alt": "Three panels of norms by layer on logarithmic axes, one curve for each number of steps."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=3, height=2.7)
for index, (key, label) in enumerate(
    (("weight", "gradient of W"), ("weight_norm", "norm of W"), ("weight_relative", "gradient / norm"))
):
    gradient_figures.layer_curves(axes[index, 0], first, key, label, "after step")
figures.show(figure)

# %% [markdown]
# The logarithm of the gradient's norm changes by {glue:text}`slope-before:.3f` a layer before the first step (theory: {glue:text}`slope-predicted:.3f`), and by {glue:text}`slope-after:.3f` after it; relative to the weights by {glue:text}`relative-after:.3f`.
# A positive slope means that gradients are smaller towards the input.

# %% tags=["hide-input"]
run.judge("first-step-equilibrates", "weights-grow-exponentially", "lower-layers-vanish")

# %% [markdown]
# ## Later: ten epochs, and a sweep
#
# The source follows a VGG19 on CIFAR100; here it is a fully connected network on digits, labelled so, with plain SGD and no weight decay. *Relative* gradients are norms over the parameter's norm.

# %% tags=["hide-input"]
per_epoch = len(split[0][0]) // n
outcome, shares = trainability_survey.train_once(
    split,
    first_setting,
    parameters.epoch_depth,
    n,
    parameters.map_width,
    max(parameters.epochs) * per_epoch,
    8,
    run.generator("epochs"),
    [epoch * per_epoch for epoch in parameters.epochs],
)
late = trainability_survey.equilibration(outcome)
late = [{**row, "step": row["step"] // per_epoch} for row in late]
run.record("epochs_probes", late)
run.record("epochs_accuracy", float(shares.nan_to_num(0.0).mean()))
run.record(
    "relative_spread",
    [
        {
            "epoch": row["step"],
            "weight": max(row["weight_relative"]) / min(row["weight_relative"]),
            "gain": max(row["gain_relative"]) / min(row["gain_relative"]),
        }
        for row in late
        if row["weight_relative"] and row["gain_relative"]
    ],
)
rates = [0.01, 0.1, 1.0]
sweep = trainability_survey.acceleration(
    split,
    rates,
    [0.0, 0.5],
    [1e-5, 0.1, 0.5],
    depth=parameters.epoch_depth,
    batch_size=n,
    width=parameters.map_width,
    steps=parameters.sweep_steps,
    networks=parameters.sweep_seeds,
    generator=run.generator,
)
run.record("sweep", sweep)
run.record("faster_shift", [trainability_survey.faster_seeds(sweep, rate, {"shift": 0.5}) for rate in rates])
run.record(
    "faster_epsilon",
    [trainability_survey.faster_seeds(sweep, rate, {"epsilon": epsilon}) for rate in rates for epsilon in (0.1, 0.5)],
)
figures.table(
    [[row["rate"], row["shift"], row["epsilon"], row["early_loss"], row["accuracy"], row["diverged"]] for row in sweep],
    header=["learning rate", "initial β", "ε", "median early loss", "median accuracy", "NaN"],
    caption=f"Digits, {parameters.epoch_depth} layers, SGD, {parameters.sweep_seeds} seeds a cell, the same weights and batches in every cell; early: first half of {parameters.sweep_steps} steps.",
)

# %% mystnb={"figure": {"caption": "Relative gradient norms of the weights (above) and of gamma (below) by layer, at the start and after some epochs; geometric means over eight networks.", "name": "fig-09-epochs"}, "image": {"alt": "Two panels of relative gradient norms by layer on logarithmic axes, one curve an epoch."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, height=2.8)
gradient_figures.layer_curves(axes[0, 0], late, "weight_relative", "W: gradient / norm", "epoch")
gradient_figures.layer_curves(axes[1, 0], late, "gain_relative", r"$\gamma$: gradient / norm", "epoch")
figures.show(figure)

# %% tags=["hide-input"]
run.judge("relative-gradients-equal", "shift-accelerates", "epsilon-accelerates")

# %% [markdown]
# ## What is known, what is open
#
# Proved here under gradient independence: one factor from the first layer on, the identity as the least, vanishing at two samples, the floor for $\varepsilon$. Measured: everything about training, at the size of a laptop, on one data set. Open: a proof of gradient independence with batch normalization,
# whose Jacobian is singular at zero; a theory of the factor between trainable depth and $\xi$; and why the outlier state's ratio behaves like $1+2/n$.
#
# ## Exercises
#
# ```{exercise} The linear factor
# :label: ex-09-linear
# *Pencil and paper, easy, 15 minutes.* Derive $\lambda_{\text{linear}} = (n-2)/(n-3)$ from {eq}`eq-09-lambda`, and say for which $n$ the squared gradient of a linear network of 100 layers grows by less than a factor of ten.
# ```
#
# ```{admonition} Hint
# :class: dropdown
# $D = I$, $\operatorname{tr}G = n-1$, $v^{\mathsf T}Gv = 1$, and one row of $b$ has the mean square one.
# ```
#
# ```{solution} ex-09-linear
# :label: sol-09-linear
# :class: dropdown
# The bracket is $n-1-1 = n-2$. The representation is $b$ itself, $\mathbb E[b_ib_j] = -1/(n-1)$ off the diagonal, so $\mu = 1+1/(n-1) = n/(n-1)$ and $\lambda = \frac{n(n-1)}{n(n-3)(n-1)}(n-2)$. From $(1+1/(n-3))^{100}<10$: $1/(n-3)<10^{1/100}-1$, $n > 3 + 1/(10^{0.01}-1)$, hence $n\ge46$.
# ```
#
# ```{exercise} Two tails
# :label: ex-09-tail
# *With bnlib, medium, 20 minutes.* Use `bnlib.gradient_theory.neuron_factors` at $n = 4, 5, 6, 8$ to estimate the tail index of a factor from the largest one per cent of 200 000 draws (Hill's estimator), and compare with `tail_index`.
# ```
#
# ```{admonition} Hint
# :class: dropdown
# Hill's estimator of the index is the inverse of the mean of $\log(x_i/x_{(k)})$ over the $k$ largest draws.
# ```
#
# ```{solution} ex-09-tail
# :label: sol-09-tail
# :class: dropdown
# `x = np.sort(neuron_factors(activation("relu"), n, 200000, np.random.default_rng(0)))[-2000:]; 1 / np.log(x / x[0]).mean()` is to be compared with $(n-1)/2$; its relative statistical error is $1/\sqrt{2000}$. The larger $n$, the farther out the power law begins: one per cent of the draws is not yet the tail, and the estimator is biased.
# ```
#
# ```{exercise} Longer training
# :label: ex-09-longer
# *Change a parameter, medium, 20 minutes and some minutes of computing.* Run this notebook with `papermill` and `-p map_steps 300`. Which column of {numref}`fig-09-map` changes most? Does the trainable depth remain proportional to $\xi$?
# ```
#
# ```{admonition} Hint
# :class: dropdown
# At a fixed number of steps a batch of four has seen four times the number of steps in samples. Look at the table of ratios, not at the accuracies.
# ```
#
# ```{solution} ex-09-longer
# :label: sol-09-longer
# :class: dropdown
# `papermill notebooks/09_gradients_and_depth.ipynb out.ipynb -p map_steps 300`. What theory predicts is the ratio between batch sizes, not the common factor, which is a matter of patience as well; and the lower layers that {prf:ref}`thm-09-first-step` freezes stay frozen, however long one waits. The table of ratios of your run decides.
# ```
#
# ```{exercise} Pythagoras in a network
# :label: ex-09-pythagoras
# *With bnlib, medium, 20 minutes.* Check {prf:ref}`thm-09-first-step` with `bnlib.trainability`: take one SGD step at $\varepsilon = 10^{-5}$ and at $\varepsilon = 0.5$, and compare $\lvert w'\rvert^2-\lvert w\rvert^2$ with $\eta^2\lvert g\rvert^2$ for each neuron.
# ```
#
# ```{admonition} Hint
# :class: dropdown
# `train_deep` with a single batch returns the parameters after the step, and the step itself is $\eta g$.
# ```
#
# ```{solution} ex-09-pythagoras
# :label: sol-09-pythagoras
# :class: dropdown
# With `before` and `after` the weights of a layer, compare `(after**2).sum(dim=1) - (before**2).sum(dim=1)` with `((after - before)**2).sum(dim=1)`. They agree up to rounding and terms of order $\varepsilon$ at $10^{-5}$. At $0.5$ they do not: the loss then depends on the length of the weights.
# ```
#
# ```{exercise} Two over n
# :label: ex-09-outlier
# *Open.* In the outlier state of networks with recentering alone the gradient grows relative to the signal by a factor whose distance from one, times $n$, is printed in the last column of the table. Find the expansion in $1/n$ and prove its first term.
# ```
#
# ```{admonition} Hint
# :class: dropdown
# Chapter 7 has expansions of the outlier state itself. The signal's multiplier is a quadratic form of the state, and the backward map acts on covariances with the symmetry of the state, a space of low dimension.
# ```
#
# ```{solution} ex-09-outlier
# :label: sol-09-outlier
# :class: dropdown
# No proof is known to us. The table separates the two parts: the gradient's multiplier at He's variance approaches one much faster than the signal's, so the first term is that of the signal alone.
# ```

# %% tags=["hide-input"]
run.finish()
