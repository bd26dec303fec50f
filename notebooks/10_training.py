# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Training: what becomes of the outlier
#
# :::{admonition} In short
# :class: tip
# **Question.** A deep network with recentering and ReLU starts with one sample of its batch far away from all others. Does that survive gradient
# descent, is it the same sample afterwards, and is such a start of any use?
#
# **Answer, at this size.** Of networks trained on one batch, {glue:text}`kept-digits` (digits) and {glue:text}`kept-gaussian` (Gaussian labels) of
# {glue:text}`started` have an outlier at the end; on resampled batches {glue:text}`kept-digits-resampled` and {glue:text}`kept-gaussian-resampled`. That networks soon leave the configuration:
# {glue:text}`verdict-essay-persists-in-training`, over all four; that it persists on images that are fitted: {glue:text}`verdict-outlier-persists-on-images`. Ten steps on one batch leave the *same* sample in
# {glue:text}`few-same-digits` and {glue:text}`few-same-gaussian`, on resampled batches in {glue:text}`few-same-digits-resampled` and {glue:text}`few-same-gaussian-resampled`: that it remains the same sample after a few
# steps is {glue:text}`verdict-review-survives-training`. Is it a property of the batch? If all its companions are changed before training, the same sample
# stays out in {glue:text}`companions-start:.0%` of the cases (fewer than half: {glue:text}`verdict-outlier-belongs-to-the-batch`); after training on one batch of digits, of the networks that
# have an outlier, in {glue:text}`companions-end:.0%` (more than half: {glue:text}`verdict-training-makes-it-the-samples`). In evaluation mode, after training on one batch of digits, fresh batches have an outlier in
# {glue:text}`evaluation-share:.0%` of the cases (fewer than half, everywhere: {glue:text}`verdict-evaluation-mode-has-no-outlier`).
#
# Class means move towards the simplex in training, with all stages: {glue:text}`verdict-neural-collapse-in-training`; cluster and outlier are a step on that way:
# {glue:text}`verdict-essay-neural-collapse`. Dedicated neurons give orthogonal and sparse first representations:
# {glue:text}`verdict-review-dedicated-neurons`; they fail when the data set outgrows the layer, and not before: {glue:text}`verdict-dedicated-outgrown`. An
# initialization that imposes cluster and outlier without batch normalization is built (an outlier on its reference batch: {glue:text}`verdict-imposed-on-the-reference-batch`); it
# reaches an accuracy sooner than He's: {glue:text}`verdict-essay-imposed-initialization`, later than He's once the data set outgrows that batch: {glue:text}`verdict-imposed-outgrown`, later than batch normalization: {glue:text}`verdict-imposed-against-batch-norm`.
# :::
#
# The sources ask these questions and do not answer them {cite}`pith2026`; the paper {cite}`nachum2024` looks at initialization. **All set-ups on this page are ours**: plain
# SGD in single precision, fully connected networks, sizes for a laptop. Every answer holds *at this size*. Criteria were written after pilot runs with other
# seeds than the seed of record. The `paper` preset takes real images in place of scikit-learn's digits; it was never executed.

# %% tags=["parameters", "hide-input"]
device = "auto"
seed = 0
results_dir = "build/runs"
scheduler = ""
data = "digits"
data_folder = "data"
samples = 256
networks = 48
axis_networks = 12
batch_size = 16
batch_sizes = [12, 32]
width = 64
depth = 48
depths = [32, 64]
long_steps = 600
steps = 240
image_rate = 0.003
gaussian_rate = 0.006
rate_factors = [0.3, 3.0]
collapse_depth = 8
collapse_deep = 96
collapse_rate = 0.03
collapse_steps = 240
collapse_networks = 24
arm_samples = [32, 128, 512]
arm_depth = 10
arm_steps = 200
arm_rates = [0.01, 0.03, 0.1, 0.3, 1.0]
arm_networks = 24
dedicated_sizes = [16, 60, 128, 256, 512]
dedicated_repeats = 10

# %% tags=["hide-input"]
from bnlib.parameters import check, folder_name, integer, integers, number, numbers, one_of
from bnlib.sweeps import address

parameters = check(
    globals(),
    scheduler=address,
    data=one_of("digits", "mnist", "fashion_mnist", "cifar10"),
    data_folder=folder_name,
    samples=integer(minimum=64),
    networks=integer(minimum=2),
    axis_networks=integer(minimum=2),
    batch_size=integer(minimum=3),
    batch_sizes=integers(minimum=3),
    width=integer(minimum=4),
    depth=integer(minimum=1),
    depths=integers(minimum=1),
    long_steps=integer(minimum=10),
    steps=integer(minimum=10),
    image_rate=number(minimum=1e-6),
    gaussian_rate=number(minimum=1e-6),
    rate_factors=numbers(minimum=1e-3),
    collapse_depth=integer(minimum=1),
    collapse_deep=integer(minimum=1),
    collapse_rate=number(minimum=1e-6),
    collapse_steps=integer(minimum=2),
    collapse_networks=integer(minimum=2),
    arm_samples=integers(minimum=32),
    arm_depth=integer(minimum=1),
    arm_steps=integer(minimum=10),
    arm_rates=numbers(minimum=1e-6),
    arm_networks=integer(minimum=2),
    dedicated_sizes=integers(minimum=8),
    dedicated_repeats=integer(minimum=2),
)

# %% tags=["hide-input"]
from dataclasses import replace

import torch

from bnlib import figures, records, training_figures
from bnlib import training_survey as survey
from bnlib.dedicated import dedicated_rows
from bnlib.neural_collapse import CollapseSpec, run_collapse
from bnlib.outlier_states import outlier_state
from bnlib.sweeps import sweep
from bnlib.time_to_accuracy import ARMS, ArmSpec, run_arm
from bnlib.training_data import training_set
from bnlib.training_geometry import GeometrySpec, run_geometry

run = records.start("10_training", parameters)
kept_runs = {"folder": parameters.results_dir / "sweeps", "scheduler": parameters.scheduler}
everywhere = {"seed": parameters.seed, "device": parameters.device}
images = {"data": parameters.data, "data_folder": parameters.data_folder}

# %% [markdown]
# ## The networks, and what is compared
#
# A network has hidden layers $X\mapsto\mathrm{ReLU}(G\,XW)$ with $G = I-\mathbf 1\mathbf 1^{\mathsf T}/n$ (recentering, no rescaling, no learned shift) and a
# linear output. Weights start Gaussian with the variance $2\alpha/d$, $\alpha=n^2/(n^2-2n+2)$, of the paper's Theorem 13: it moves no angle and no ratio of
# norms, and keeps the outlier's norm over the layers, so that there are gradients to train with. A network **has an outlier** on its batch if, as in chapter 6, the sample of
# largest norm in the last hidden layer stands at 85° or more to the mean of the others and is at least twice as long as the second. Of random networks those are taken
# that start with one; a control takes networks that start without.
#
# Two kinds of task. *Digits*: ten classes, cross entropy. *Gaussian labels*: Gaussian inputs in 64 dimensions with ten Gaussian numbers each to be predicted, half the mean squared error; there is nothing to learn but
# the numbers themselves. Two kinds of batches, with the same networks and the same measured batch: *fixed*, every step on the measured batch, and *resampled*,
# mini-batches from a training set that contains it. Everything is measured on the measured batch, network by network, so that all comparisons are paired.
# The networks of a row share one training set: the intervals on this page are over weights, batches and orders, given that set, and speak of this task and not of tasks in general.
#
# Each configuration is a small named spec. A line in this list is one more configuration; the sweep runs over all cores or on the cluster named by `scheduler`, keeps each
# result by the content of its spec and of the program, and goes on where it was interrupted.

# %%
base = GeometrySpec(
    name="base",
    samples=parameters.samples,
    batch_size=parameters.batch_size,
    width=parameters.width,
    depth=parameters.depth,
    steps=parameters.steps,
    networks=parameters.axis_networks,
    **everywhere,
)
specs = []
for task, rate in ((images, parameters.image_rate), ({"data": "gaussian"}, parameters.gaussian_rate)):
    main = replace(base, **task, learning_rate=rate)
    slow = replace(main, learning_rate=rate * min(parameters.rate_factors))
    named = main.data
    specs += [
        replace(main, name=f"{named}, fixed", networks=parameters.networks, steps=parameters.long_steps),
        replace(main, name=f"{named}, resampled", networks=parameters.networks, batches="resampled"),
        replace(main, name=f"{named}, no outlier at the start", start="no outlier"),
        replace(main, name=f"{named}, with shift", shift=True),
        replace(main, name=f"{named}, RMS+NL", stages="RMS+NL"),
        replace(main, name=f"{named}, batch norm", stages="RC+RS+NL", shift=True),
        replace(main, name=f"{named}, NL", stages="NL", variance="as drawn"),
        *[replace(main, name=f"{named}, rate x {x:g}", learning_rate=rate * x) for x in parameters.rate_factors],
        *[replace(slow, name=f"{named}, n = {n}", batch_size=n) for n in parameters.batch_sizes],
        *[replace(slow, name=f"{named}, {d} layers", depth=d) for d in parameters.depths],
    ]

# %% tags=["hide-input"]
cells = sweep(run_geometry, specs, label="training runs", **kept_runs)
tasks = [parameters.data, "gaussian"]
mains = [f"{task}, fixed" for task in tasks]
both = mains + [f"{task}, resampled" for task in tasks]
few = 10
run.record(
    "survival",
    [survey.survival_row(one) | {"main": one["name"] in mains, "both": one["name"] in both} for one in cells],
)
run.record(
    "survival_few", [survey.survival_row(survey.cell(cells, name), few) | {"main": name in mains} for name in both]
)
run.record("courses", {one["name"]: one["rows"] for one in cells if one["name"] in both})
run.record("networks_end", {name: survey.cell(cells, name)["networks_seen"] for name in mains})
run.record("diverged_runs", sum(one["diverged"] > 0 for one in cells))
run.record("diverged_networks", sum(one["diverged"] for one in cells))
run.record("trained_networks", sum(one["networks"] for one in cells))
rows = run.values["survival"]
run.glue("started", "[r['started'] for r in survival if r['main']][0]")
for label, index in (("digits", 0), ("gaussian", 1)):
    for name, wanted in ((label, "r['main']"), (f"{label}-resampled", "r['both'] and not r['main']")):
        for key in ("kept", "same"):
            run.glue(f"{key}-{name}", f"[r['{key}'] for r in survival if {wanted}][{index}]")
    for name, wanted in ((label, "r['main']"), (f"{label}-resampled", "not r['main']")):
        for key in ("kept", "same"):
            run.glue(f"few-{key}-{name}", f"[r['{key}'] for r in survival_few if {wanted}][{index}]")
resampled_rows = f"courses['{both[2]}']"
run.glue("resampled-loss-start", f"{resampled_rows}[0]['loss']")
run.glue("resampled-loss-end", f"{resampled_rows}[-1]['loss']", optional=True)
run.glue("diverged-networks", "diverged_networks")
run.glue("diverged-runs", "diverged_runs")
run.glue("trained-networks", "trained_networks")
run.glue("networks", "[r['networks'] for r in survival if r['main']][0]")

# %% [markdown]
# ## Does it survive, and is it the same sample?

# %% mystnb={"figure": {"caption": "Networks that start with an outlier on their batch, trained on that batch alone: share that has an outlier after so many steps, and share in which it is the same sample as at the start, with exact 95 percent intervals; and the latter share when the same networks are trained on resampled batches. Dotted: one over the batch size, a sample picked at random. Above: images; below: Gaussian labels.", "name": "fig-10-survival"}, "image": {"alt": "Two panels over the number of steps on a logarithmic axis, each with three curves with bands, for an outlier, for the same outlier and for the same outlier under resampled batches, and a dotted line for chance."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, height=3.1)
for panel, task in zip(axes[:, 0], tasks, strict=True):
    fixed, resampled = (survey.cell(cells, f"{task}, {batches}") for batches in ("fixed", "resampled"))
    training_figures.survival(panel, fixed, task, resampled)
figures.show(figure)

# %% [markdown]
# After {glue:text}`few-steps` steps on the measured batch, of {glue:text}`started` networks {glue:text}`few-kept-digits` (digits) and {glue:text}`few-kept-gaussian` (Gaussian) have an outlier, {glue:text}`few-same-digits` and
# {glue:text}`few-same-gaussian` the same one; on resampled batches {glue:text}`few-kept-digits-resampled` and {glue:text}`few-kept-gaussian-resampled`, the same {glue:text}`few-same-digits-resampled` and {glue:text}`few-same-gaussian-resampled`.
# The review asks for the identity after *a few* steps; we read ten, and decide by the exact interval of the share against one half. At the end of the run on one batch
# it is the same in {glue:text}`same-digits` and {glue:text}`same-gaussian`.
#
# ### The gradient, or any change?
#
# One step changes the weights by a fraction of their norm that stands in the table. Is the outlier's identity simply fragile? Networks were taken *because* they have an outlier, so that some will lose it under
# any change. The control adds to every weight matrix Gaussian noise of exactly the norm by which training changed that matrix. Compare, too, a step on the measured batch with one on another batch.

# %% tags=["hide-input"]
run.record("few_steps", few)
run.glue("few-steps", "few_steps")
control = [
    row | {"main": row["name"] in mains} for row in survey.control_rows([survey.cell(cells, name) for name in both])
]
run.record("control", control)
figures.table(
    [
        [
            r["name"],
            r["time"],
            r["relative_change"],
            r["started"],
            r["trained_same"],
            r["random_same"],
            r["only_noise"],
            r["only_trained"],
            r["p_value"],
        ]
        for r in control
    ],
    header=[
        "data and batches",
        "after the ... step",
        "change of the weights / their norm",
        "networks",
        "same outlier, trained",
        "same outlier, noise",
        "noise only",
        "training only",
        "p, sign test",
    ],
    caption="Training against noise of the same size in every weight matrix: shares of networks that keep the outlier they started with, and, paired, how many keep it under one change and not under the other.",
)
run.judge(
    "review-survives-training",
    "essay-persists-in-training",
    "outlier-persists-on-images",
    "another-outlier-at-the-end",
    "same-outlier-above-chance",
    "gradient-steps-are-not-noise",
)

# %% [markdown]
# That training on one batch moves the outlier more than noise of the same size does is {glue:text}`verdict-gradient-steps-are-not-noise`. A reason why it might be: noise in different layers is independent and its effects add like a random walk, while the changes of one step all serve the same samples, and
# add up in the same sense over the depth. An explanation that predicts the numbers is not known to us.
#
# ## The cluster's residual angle, and the loss
#
# At infinite width the cluster does not collapse to a point: its samples keep an angle of about $3\pi/n$ (chapter 7), {glue:text}`cluster-theory:.1f`° at this batch size; at this width the median at the start is {glue:text}`cluster-start:.1f`° (digits). *Survives* means here: in networks that keep an
# outlier, the median paired change stays above minus one half and below the whole of what the median was.

# %% mystnb={"figure": {"caption": "Along training, networks that start with an outlier: median angle within the cluster (above) and loss on the measured batch, logarithmic (below); bands are 95 percent intervals of the medians. Compare fixed with resampled batches.", "name": "fig-10-course"}, "image": {"alt": "Two panels over the number of steps with four curves each: images and Gaussian labels, fixed and resampled batches. The upper one has angles in degrees, the lower one losses."}} tags=["hide-input"]
state = outlier_state(parameters.batch_size)
run.record("cluster_theory_deg", None if state is None else state.cluster_angle * 57.29577951308232)
run.glue("cluster-theory", "cluster_theory_deg", optional=True)
run.glue("cluster-start", "[r['start_cluster_deg'] for r in survival if r['main']][0]")
figure, axes = figures.new_figure(rows=2, height=3.0)
courses = [(name, survey.cell(cells, name)) for name in both]
training_figures.along_training(axes[0, 0], courses, "cluster_deg", "angle within the cluster (degrees)")
training_figures.along_training(axes[1, 0], courses, "loss", "loss on the measured batch")
axes[1, 0].set_yscale("log")
figures.show(figure)

# %% tags=["hide-input"]
run.judge("cluster-angle-survives")

# %% [markdown]
# ## Stages, learning rates, batch sizes, depths
#
# The other stages: *RS only* is rescaling by the root mean square (by the standard deviation, without recentering, angles go to zero with depth, chapter 3); *batch norm* is all of it, with a learned gain and shift as PyTorch has them; *NL* is neither.
# The networks of a row with other stages have the *same* weights and batches as the first row's (their choice was made with recentering alone), so what differs is the stages. Batch sizes and depths are compared at the slowest
# rate. A rule that asks whether one of many rows falls short takes intervals of 99.8 percent. A network whose loss became infinite or NaN ends there, is counted in the column *NaN*, and counts as having lost its outlier, but for the claim over all rates, sizes and depths, which leaves it out; {glue:text}`diverged-networks` of {glue:text}`trained-networks` networks did, in {glue:text}`diverged-runs` of the rows.

# %% tags=["hide-input"]
figures.table(
    [
        [
            r["name"],
            r["stages"],
            r["learning_rate"],
            r["started"],
            r["kept"],
            r["same"],
            r["born"],
            r["diverged"],
            r["angle_deg"],
            r["start_cluster_deg"],
            r["change"],
            r["loss"],
            r["accuracy"],
            r["fitted"],
            r["fitted_kept"],
        ]
        for r in rows
    ],
    header=[
        "configuration",
        "stages",
        "rate",
        "with outlier at the start",
        "kept",
        "same sample",
        "new",
        "NaN",
        "angle (°)",
        "cluster at the start (°)",
        "its change (°)",
        "loss",
        "accuracy",
        "fitted",
        "of these kept",
    ],
    caption=f"After {parameters.long_steps} steps (fixed) or {parameters.steps} steps (all others): of the networks that started with an outlier under the trained stages, how many have one and how many the same; how many others have one. Angle of the largest sample to the mean of the others, and paired change of the angle within the cluster: medians. Fitted: networks with less than a tenth of the loss that they started with, and how many of these still have the outlier that they started with or another.",
)
run.judge(
    "no-outlier-under-other-stages", "training-makes-outliers", "shift-lets-the-outlier-be", "outlier-kept-over-axes"
)

# %% [markdown]
# ## A property of the batch? New companions
#
# Every layer subtracts the mean of the batch, so that no sample has a geometry of its own. How much is then the sample's, and how much the batch's? Exchange its companions. From each network's batch the outlier is kept and $1$, $n/2$ or all $n-1$ companions are replaced
# by other samples of the training set; or the outlier itself is replaced, and somebody may take its seat.

# %% mystnb={"figure": {"caption": "Share of cases in which the outlier of a network's batch is still the outlier when so many of its companions are replaced, training mode; two standard errors over networks. Compare before with after training, on one batch and on resampled ones. Above: images; below: Gaussian labels.", "name": "fig-10-companions"}, "image": {"alt": "Two panels over the number of replaced companions, one curve with error bars each for before training, after training on fixed batches and after training on resampled batches."}} tags=["hide-input"]
company = [
    row | {"main": row["name"] in mains} for row in survey.companion_rows([survey.cell(cells, name) for name in both])
]
run.record("companions", company)
figure, axes = figures.new_figure(rows=2, height=2.9)
for panel, task in zip(axes[:, 0], tasks, strict=True):
    training_figures.companions(panel, [row for row in company if row["data"] == task], task)
figures.show(figure)

# %% tags=["hide-input"]
figures.table(
    [
        [r["name"], r["time"], r["started"], r["same"], r["same_error"], r["newcomer"], r["other"], r["none"]]
        for r in company
        if r["all"]
    ],
    header=[
        "configuration",
        "time",
        "networks",
        "same, all companions new",
        "standard error",
        "outlier replaced: the newcomer",
        "another sample",
        "none",
    ],
    caption="What happens to the seat. Columns 4 and 5: all companions are replaced. The last three: the outlier itself is replaced, and the new outlier is the newcomer, a sample that was there, or there is none.",
)
run.glue(
    "companions-start",
    "[r['same'] for r in companions if r['main'] and r['all'] and r['time'] == 'start'][0]",
    optional=True,
)
run.glue(
    "companions-end",
    "[r['same'] for r in companions if r['main'] and r['all'] and r['time'] == 'end'][0]",
    optional=True,
)
run.judge("outlier-belongs-to-the-batch", "training-makes-it-the-samples")

# %% [markdown]
# ## Training mode against evaluation mode
#
# In evaluation mode the batch means are constants: averages over the batches that were seen in training (32 of them for resampled batches, with the final weights; the one batch for fixed ones). No sample sees another one. On the fixed batch itself the two modes are the same network,
# exactly, and so is the geometry; on fresh batches they are not.

# %% tags=["hide-input"]
chosen = both + [f"{task}, batch norm" for task in tasks]
modes = [
    row | {"recentered": row["name"] in both} for row in survey.mode_rows([survey.cell(cells, name) for name in chosen])
]
run.record("modes", modes)
figures.table(
    [
        [
            r["name"],
            r["time"],
            r["kind"],
            r["train_present"],
            r["evaluation_present"],
            r["same"],
            r.get("angle_deg_train"),
            r.get("angle_deg_evaluation"),
            r.get("loss_train"),
            r.get("loss_evaluation"),
            r["loss_difference"]["standard_error"],
        ]
        for r in modes
    ],
    header=[
        "configuration",
        "time",
        "batch",
        "outlier, training mode",
        "outlier, evaluation mode",
        "the same in both",
        "angle, training (°)",
        "angle, evaluation (°)",
        "loss, training",
        "loss, evaluation",
        "its paired standard error",
    ],
    caption="The two modes on the same batches, means over networks: own batches (measured in training) and fresh ones of the training set.",
)
run.glue(
    "evaluation-share",
    "[r['evaluation_present'] for r in modes if r['recentered'] and r['kind'] == 'fresh' and r['time'] == 'end' and r['batches'] == 'fixed'][0]",
    optional=True,
)
run.judge("evaluation-mode-has-no-outlier", "modes-agree-on-the-fixed-batch")

# %% [markdown]
# ## The end of training: neural collapse
#
# Papyan, Han and Donoho {cite}`papyan2020` describe the end of training by the class means of the last hidden layer. With centered class means $m_1,\dots,m_K$: the spread within classes vanishes against that between them,
# $\mathrm{NC1} = \tfrac1K\operatorname{tr}(\Sigma_W\Sigma_B^+)\to0$; and the means become a simplex, of equal norms and with all cosines $-1/(K-1)$, $\mathrm{NC2} = $ mean of $\lvert\cos(m_a,m_b)+\tfrac1{K-1}\rvert\to0$.
#
# ```{prf:proposition} The mean of the cosines says nothing
# :label: prop-10-cosine
# If the centered class means have equal norms, the mean of their cosines over pairs is $-1/(K-1)$, whatever their directions. So NC2 must be read off the spread of the cosines.
# ```
#
# ```{prf:proof}
# $0=\lvert\sum_a m_a\rvert^2 = \sum_a\lvert m_a\rvert^2+\sum_{a\ne b}\langle m_a,m_b\rangle$. With $\lvert m_a\rvert = r$ for all $a$ the second sum is $-Kr^2$ over $K(K-1)$ ordered pairs.
# ```
#
# The essay sees a precursor of this collapse in the cluster with its outlier. One batch of ten classes with four samples each, the same for all stages, is trained on to the end and beyond; a deep network, at its start only, shows where the outlier puts the class means: one of them follows the
# outlier, the others fall together, and their centered means point to one side.

# %%
crowd = CollapseSpec(
    name="NL",
    stages="NL",
    depth=parameters.collapse_depth,
    learning_rate=parameters.collapse_rate,
    steps=parameters.collapse_steps,
    networks=parameters.collapse_networks,
    width=parameters.width,
    **images,
    **everywhere,
)
deep = replace(crowd, depth=parameters.collapse_deep, steps=1)
collapse_specs = [
    crowd,
    replace(crowd, name="RMS+NL", stages="RMS+NL"),
    replace(crowd, name="RC+NL", stages="RC+NL"),
    replace(crowd, name="batch norm", stages="RC+RS+NL", shift=True),
    replace(deep, name="NL, deep"),
    replace(deep, name="RC+NL, deep", stages="RC+NL"),
    replace(deep, name="batch norm, deep", stages="RC+RS+NL", shift=True),
]

# %% tags=["hide-input"]
collapse = sweep(run_collapse, collapse_specs, label="neural collapse", **kept_runs)
run.record("collapse", collapse)
shallow, deeper = [spec.name for spec in collapse_specs[:4]], [spec.name for spec in collapse_specs[4:]]
along = [(name, "start", name, "end") for name in shallow]
run.record("collapse_within", survey.compare_collapse(collapse, "within", along))
run.record("collapse_gap", survey.compare_collapse(collapse, "simplex_gap", along))
against = [("NL, deep", "start", name, "start") for name in deeper[1:]] + [("NL", "start", "batch norm", "start")]
run.record("collapse_precursor", survey.compare_collapse(collapse, "simplex_gap", against))
run.record("deep_outliers", survey.cell(collapse, "RC+NL, deep")["rows"][0]["outlier"])
ends = [
    (name, row)
    for name in shallow
    for row in survey.cell(collapse, name)["rows"]
    if row["step"] in (0, parameters.collapse_steps)
]
ends += [(name, survey.cell(collapse, name)["rows"][0]) for name in deeper]
figures.table(
    [
        [
            name,
            row["step"],
            row["within"],
            row["norm_spread"],
            row["cosine"],
            row["simplex_gap"],
            row["outlier"],
            row["accuracy"],
            row["loss"],
        ]
        for name, row in ends
    ],
    header=["stages", "step", "NC1", "spread of norms", "mean cosine", "NC2", "with outlier", "accuracy", "loss"],
    caption=f"Class means of the last hidden layer, medians over {parameters.collapse_networks} networks; for ten classes the simplex has cosine -1/9. Deep: {parameters.collapse_deep} layers, at the start.",
)

# %% mystnb={"figure": {"caption": "Neural collapse along training on one batch of forty samples: spread within classes (above) and mean distance of the class means' cosines from those of the simplex (below), medians over networks, logarithmic axes. Lower is nearer to collapse; compare the stages.", "name": "fig-10-collapse"}, "image": {"alt": "Two panels over the number of steps, both axes logarithmic, one curve for each of four combinations of stages."}} tags=["hide-input"]
figure, axes = figures.new_figure(rows=2, height=2.9)
training_figures.collapse_curves(axes[:, 0], [survey.cell(collapse, name) for name in shallow])
figures.show(figure)

# %% tags=["hide-input"]
differences = run.values["collapse_within"] + run.values["collapse_gap"] + run.values["collapse_precursor"]
figures.table(
    [
        [r["measure"], r["first"], r["second"], r["pairs"], r["mean"], r["mean_low"], r["mean_high"]]
        for r in differences
    ],
    header=["measure", "from", "to", "networks", "mean paired difference", "low", "high"],
    caption="Paired differences, network by network, with 95 percent intervals (Student).",
)
run.judge("neural-collapse-in-training", "essay-neural-collapse", "batch-norm-nearer-the-simplex")

# %% [markdown]
# ## Dedicated neurons
#
# The review reports an initialization that gives every sample a neuron of its own. Images span {glue:text}`dimension` dimensions here (of {glue:text}`pixels` pixels some never vary). How the paper builds it is not at hand; ours: with the centered samples $c_i$ as rows of $C$, neuron $i$ has the direction $(C^{\mathsf T}C)^+c_i$ and a threshold half-way between its sample's score and the next.
#
# ```{prf:proposition} When every sample can have its own neuron
# :label: prop-10-dedicated
# The scores are the hat matrix $H = C(C^{\mathsf T}C)^+C^{\mathsf T}$. If the samples are affinely independent (so at most $d+1$ of them), $H=G$: the own score is $1-1/n$, all others $-1/n$, and the first representation is, after scaling, the identity matrix: orthogonal, and with one active neuron for each sample.
# Beyond $d+1$ samples a neuron with $h_{ii}>\max_{j\neq i}h_{ij}$ is still silent on all other samples; this can hold only for corners of the convex hull.
# ```
#
# ```{prf:proof}
# $H$ is the orthogonal projection onto the column space of $C$, which lies in $\mathbf 1^\perp$ and is all of it when the rank of $C$ is $n-1$; then $H = G$. If the linear function of $x$ that neuron $i$ computes takes its strict maximum over the samples at $x_i$, then $x_i$ is no convex combination of the others.
# ```

# %% mystnb={"figure": {"caption": "Dedicated neurons in the first layer, means over random training sets. Above: share of samples on which no neuron is active, for training samples and for samples that the layer was not built from, with as many neurons as samples and with a fixed number. Below: share of active neurons and mean cosine between the first representations, against a layer with He's weights. Follow the curves past the dimension of the input.", "name": "fig-10-dedicated"}, "image": {"alt": "Two panels over the number of training samples on a logarithmic axis. The upper one has four curves of shares of silent samples, the lower one four curves of activity and cosine on a logarithmic axis."}} tags=["hide-input"]
generator = run.generator("dedicated")
pool = training_set(
    parameters.data,
    max(1500, 2 * max(parameters.dedicated_sizes) + 400),
    generator=generator,
    folder=parameters.data_folder,
)
dedicated = dedicated_rows(
    pool.x[400:],
    parameters.dedicated_sizes,
    [None, parameters.width],
    pool.x[:400],
    repeats=parameters.dedicated_repeats,
    generator=generator,
)
run.record("dedicated", dedicated)
run.record("pixels", pool.x.shape[1])
run.record("dimension", int(torch.linalg.matrix_rank(pool.x.double())))
run.glue("pixels", "pixels")
run.glue("dimension", "dimension")
figure, axes = figures.new_figure(rows=2, height=3.1)
training_figures.dedicated(axes[:, 0], dedicated)
figures.show(figure)

# %% tags=["hide-input"]
figures.table(
    [
        [
            r["samples"],
            r["neurons"],
            r["isolated"],
            r["orthogonal"],
            r["active"],
            r["he_active"],
            r["he_cosine"],
            r["silent"],
            r["held_out_silent"],
            r["held_out_silent_error"],
        ]
        for r in dedicated
    ],
    header=[
        "samples",
        "neurons",
        "neurons silent on all others",
        "sets exactly orthogonal",
        "active",
        "active, He",
        "cosine, He",
        "silent samples",
        "silent held-out samples",
        "standard error",
    ],
    caption=f"First representations of dedicated neurons, means over {parameters.dedicated_repeats} random training sets out of one pool; the samples span {run.values['dimension']} dimensions.",
)
run.judge("review-dedicated-neurons", "dedicated-silent-on-others")

# %% [markdown]
# ## Imposing cluster and outlier without batch normalization
#
# The essay's proposal, built. Take one *reference batch*. Draw Gaussian weights layer by layer and set the bias of each neuron to minus its mean pre-activation on that batch.
#
# ```{prf:proposition} Frozen recentering
# :label: prop-10-frozen
# On the reference batch this network, which has no normalization, equals the network with recentering and the same weights, in every layer. For any other sample, and for every batch once the weights change, its biases are constants.
# ```
#
# ```{prf:proof}
# By induction over the layers: if the inputs of a layer agree, $XW+\mathbf 1b^{\mathsf T} = XW-\tfrac1n\mathbf 1\mathbf 1^{\mathsf T}XW = GXW$.
# ```
#
# A network of few layers is too shallow to reach the outlier state. So the first layer is the affine map of least norm that takes the reference batch to where two hundred recentered random layers take it: for affinely independent samples this is exact,
# and since the target is not negative the ReLU leaves it alone. From there on the recentered layers keep the state, which is stable (chapter 7). The price: one pass through random layers and one pseudo-inverse, once; nothing per step.
#
# Five ways to start, the same data and order, each with its best learning rate of a common grid (chosen on networks of its own): *He*; *batch norm*; *recentering*; *dedicated neurons* in the first layer, on the scale that He's layer has, and He's weights above (their scale is free; too small a one would be an unfair start); *cluster and outlier*. Only the second and the third normalize in
# training. All networks of a size share one training set, and differ in weights, order and reference batch. Time is the number of steps until the accuracy on training samples, in batches and in training mode, is {glue:text}`target:.0%`. The reference batch, like a mini-batch, has {glue:text}`arm-batch` samples: data sets of more outgrow it, and those of more than {glue:text}`arm-width` outgrow the layer of dedicated neurons, which has none left for the rest. (The smallest set does not outgrow it: that is the control.)

# %%
arm = ArmSpec(
    name="he",
    arm="he",
    depth=parameters.arm_depth,
    width=parameters.width,
    steps=parameters.arm_steps,
    learning_rates=tuple(parameters.arm_rates),
    networks=parameters.arm_networks,
    **images,
    **everywhere,
)
arm_specs = [
    replace(arm, name=f"{start}, {size} samples", arm=start, samples=size)
    for size in parameters.arm_samples
    for start in ARMS
]

# %% mystnb={"figure": {"caption": "Steps until the target accuracy, one point a network, for five ways to start and three sizes of the training set; logarithmic axis. Points above the dashed line did not reach it within the run. Compare the columns for one size, and the sizes within a column.", "name": "fig-10-times"}, "image": {"alt": "Clouds of points, five columns for the ways to start, three kinds of markers for the sizes of the training set, numbers of steps on a logarithmic vertical axis with a dashed line at the upper end."}} tags=["hide-input"]
arms = sweep(run_arm, arm_specs, label="ways to start", **kept_runs)
run.record("arms", arms)
run.glue("target", "arms[0]['target']")
run.glue("arm-batch", "arms[0]['batch_size']")
run.glue("arm-width", "arms[0]['width']")
figure, axes = figures.new_figure(height=3.9)
training_figures.times(axes[0, 0], arms, list(ARMS))
figures.show(figure)

# %% tags=["hide-input"]
against = [("he", name) for name in ARMS if name != "he"] + [("batch norm", "cluster and outlier")]
times = survey.compare_times(arms, against)
run.record("times", times)
run.record("imposed", survey.imposed_rows(arms))
figures.table(
    [
        [
            r["arm"],
            r["samples"],
            r["rate"],
            r["at_edge"],
            r["median"],
            r["reached"],
            r["diverged"],
            sum(r["accuracy"]) / len(r["accuracy"]),
        ]
        for r in arms
    ],
    header=[
        "start",
        "samples",
        "rate chosen",
        "end of the grid",
        "median steps",
        "networks that reached it",
        "NaN",
        "accuracy at the end",
    ],
    caption=f"{parameters.arm_depth} hidden layers, {parameters.arm_networks} networks each, {parameters.arm_steps} steps.",
)
figures.table(
    [
        [
            r["samples"],
            r["first"],
            r["second"],
            r["sooner"],
            r["later"],
            r["ties"],
            r["p_value"],
            r["median"],
            r["low"],
            r["high"],
        ]
        for r in times
    ],
    header=[
        "samples",
        "first",
        "second",
        "second sooner",
        "second later",
        "ties",
        "p, sign test",
        "median difference (steps)",
        "low",
        "high",
    ],
    caption="Paired comparison, network by network; a network that does not reach the target is later than every one that does. The difference is over pairs that both reach it, with its 95 percent order-statistic interval.",
)
figures.table(
    [
        [r["samples"], r["group"], r["present"], r["networks"], r["angle_deg"], r["mean_angle_deg"]]
        for r in run.values["imposed"]
    ],
    header=["samples", "batch", "with outlier", "networks", "angle of the largest (°)", "mean pairwise angle (°)"],
    caption="Networks that start with imposed cluster and outlier, before training: on their reference batch, and on other samples of the training set.",
)
run.judge(
    "imposed-on-the-reference-batch",
    "imposed-not-on-others",
    "essay-imposed-initialization",
    "imposed-outgrown",
    "imposed-against-batch-norm",
    "dedicated-outgrown",
)

# %% [markdown]
# ## What is known, what is open
#
# Proved here: the two modes agree on a batch that is trained on alone, frozen recentering is recentering on its reference batch, dedicated neurons are orthogonal for affinely independent samples, and the mean cosine of class means is no evidence. Measured, at this size and with plain SGD: everything about training.
# Open: how a gradient step moves the outlier, against noise of the same size ({glue:text}`verdict-gradient-steps-are-not-noise`), and by what mechanism training makes it a property of the sample ({glue:text}`verdict-training-makes-it-the-samples`); whether either depends on width, where only one was run; other optimizers, momentum and weight decay; and long training
# on resampled batches, where in these runs the median loss on digits went from {glue:text}`resampled-loss-start:.2f` to {glue:text}`resampled-loss-end:.2f` only.
#
# ## Exercises
#
# ```{exercise} Class means with one outlier
# :label: ex-10-means
# *Pencil and paper, easy, 20 minutes.* Let a batch of $K$ classes be in Definition 12's state: one sample, of class 1, at the unit vector $e$, all others at $\nu\perp e$. With $s$ samples a class, find the cosines between the centered class means, and NC2.
# ```
#
# ```{admonition} Hint
# :class: dropdown
# All class means but the first are equal to $\nu$. Center, and look at the directions only.
# ```
#
# ```{solution} ex-10-means
# :label: sol-10-means
# :class: dropdown
# The means are $\nu+(e-\nu)/s$ for class 1 and $\nu$ for the others. Centered: $(1-\tfrac1K)(e-\nu)/s$ and $-\tfrac1K(e-\nu)/s$. All lie on one line: the cosine is $-1$ between class 1 and any other and $+1$ between two others. So NC2 is $\frac{2}{K}\cdot(1-\frac1{K-1}) + \frac{K-2}{K}(1+\frac{1}{K-1}) = \frac{2(K-2)}{K(K-1)}+\frac{K-2}{K-1} = \frac{(K-2)(K+2)}{K(K-1)}$, about 1.07 for ten classes, where independent Gaussian means in a wide space have nearly zero.
# ```
#
# ```{exercise} One sample too many
# :label: ex-10-toomany
# *With bnlib, medium, 20 minutes.* Use `bnlib.initialisations.imposing_layer` to map $n$ Gaussian samples in eight dimensions to a random non-negative target, for $n = 4,\dots,16$. Plot the relative error of the target against $n$ and explain where it starts and how it grows.
# ```
#
# ```{admonition} Hint
# :class: dropdown
# The map is exact for affinely independent samples. Beyond that, count dimensions: onto what subspace is the centered target projected?
# ```
#
# ```{solution} ex-10-toomany
# :label: sol-10-toomany
# :class: dropdown
# Zero up to $n = 9$. Beyond, the columns of the centered target, in the $(n-1)$-dimensional space $\mathbf 1^\perp$, are projected onto the eight-dimensional column space of the centered samples; for a target that is independent of them a share of $1-8/(n-1)$ of the centered target's squared norm is lost on average.
# ```
#
# ```{exercise} One more line
# :label: ex-10-line
# *Change a parameter, medium, 20 minutes and some minutes of computing.* (a) Run the notebook with `papermill` and `-p steps 2000`: does the outlier that resampled training leaves become a property of the sample, too? (b) Add one line to the list of configurations that trains with PyTorch's default initialization, `initialization="torch default"`, and `variance="as drawn"`. What happens to the loss, and why?
# ```
#
# ```{admonition} Hint
# :class: dropdown
# (b) What factor does a layer of width $d$ with weight variance $1/(3d)$ apply to the scale of the signal, compared with the variance here?
# ```
#
# ```{solution} ex-10-line
# :label: sol-10-line
# :class: dropdown
# (a) `papermill notebooks/10_training.ipynb out.ipynb -p steps 2000`; what has the same spec as before is read back. The table of seats decides; look first at the loss of resampled training, which at the laptop's number of steps ends at {glue:text}`resampled-loss-end:.2f` (digits): what was not learned cannot have become the sample's. (b) Each layer multiplies the scale by about 0.38 of what it should, $\sqrt{(1/3)/(2\alpha)}$, so after 48 layers the signal has lost some twenty orders of magnitude; angles, and outliers, are those of uniform instead of Gaussian weights, but the gradients of all hidden layers are as small, and only the biases of the output learn.
# ```
#
# ```{exercise} From the batch to the sample
# :label: ex-10-open
# *Open.* That before training the outlier belongs to the batch is {glue:text}`verdict-outlier-belongs-to-the-batch`, and {numref}`fig-10-companions` shows what it is after training on a fixed batch. Find a mechanism that predicts the curve. For instance: which part of the first layers' change makes the sample's own pre-activations large, whatever mean is subtracted?
# ```
#
# ```{admonition} Hint
# :class: dropdown
# Follow `bnlib.training_geometry.run_geometry` by hand: train, then put back the trained weights of single layers into the initial network, and see from which layer on the sample stays out under new companions.
# ```
#
# ```{solution} ex-10-open
# :label: sol-10-open
# :class: dropdown
# No answer is known to us. A first observation to test: cross entropy on a batch that is dominated by one sample lowers the loss fastest by fitting that sample, which aligns the first layer with its input.
# ```

# %% tags=["hide-input"]
run.finish()
