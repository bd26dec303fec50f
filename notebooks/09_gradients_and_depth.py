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
# On handwritten digits the depth that still trains is proportional to the predicted scale $1/\log\lambda$ ({glue:text}`verdict-depth-scale-proportional`),
# with a factor near {glue:text}`depth-factor:.1f`, and no network deeper than fifty layers trained ({glue:text}`verdict-fifty-layers`). An $\varepsilon$ of the
# order of the variance helps until the signal itself dies ({glue:text}`verdict-epsilon-critical`); nearly linear activations help more
# ({glue:text}`verdict-near-linear-trains`).
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
theory_activations = ["identity", "leaky 0.5", "tanh 0.5", "tanh", "sigmoid", "erf-like", "gelu", "silu", "relu", "sin", "abs", "square"]
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
map_depths = [4, 8, 16, 24, 32, 48, 64]
map_batch_sizes = [4, 8, 16, 64]
map_seeds = 3
map_steps = 100
map_width = 64
longer_factor = 4
sgd_rate = 0.1
adam_rate = 0.003
first_step_depth = 64
cure_depth = 48
epoch_depth = 10
epochs = [0, 3, 5, 10]
sweep_seeds = 8
sweep_steps = 44

# %% tags=["hide-input"]
from bnlib.gradient_theory import moment_batch_sizes
from bnlib.parameters import check, integer, integers, number, one_of

parameters = check(
    globals(),
    batch_sizes=moment_batch_sizes,
    activation_batch_size=integer(minimum=6),
    activations=lambda name, value: [parsed_activation(one).name and one for one in value],
    theory_activations=lambda name, value: [parsed_activation(one).name and one for one in value],
    largest_batch=integer(minimum=8),
    width=integer(minimum=16),
    layers=integer(minimum=4),
    draws=integer(minimum=4),
    neurons=integer(minimum=100),
    half_batch_size=integer(minimum=7),
    half_table_sizes=integers(minimum=7),
    epsilon_fractions=lambda name, value: [number(minimum=0.01, maximum=0.95)(name, one) for one in value],
    independence_widths=integers(minimum=8),
    chains=integer(minimum=4),
    small_widths=integers(minimum=4),
    small_draws=integer(minimum=4),
    small_chains=integer(minimum=10),
    sample_means=integer(minimum=4000),
    data=one_of("digits", "mnist", "fashion_mnist", "cifar10"),
    data_folder=lambda name, value: str(value),
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
