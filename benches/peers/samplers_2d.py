"""The chains of benches/samplers_2d.rs by torchebm or ebmkit: seconds of each run as a line of JSON.

python samplers_2d.py torchebm gaussian --chains 1000 --steps 500 --step-size 0.1 [--threads 2]

Energies are the library's own where it has them. ebmkit takes any function, and has neither Gaussian nor double well.
"""
import argparse
import importlib.metadata
import json
import time

import torch

MEANS = [[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0], [0.0, -2.0]]


def torchebm(energy, step_size):
    from torchebm.core import DoubleWellModel, GaussianModel
    from torchebm.samplers import LangevinDynamics

    energies = {
        "gaussian": lambda: GaussianModel(torch.zeros(2), torch.eye(2)),
        "double-well": lambda: DoubleWellModel(barrier_height=2.0, b=1.0),
    }
    sampler = LangevinDynamics(energies[energy](), step_size=step_size)
    return lambda x, steps: sampler.sample(x=x, n_steps=steps)


def ebmkit(energy, step_size):
    from ebm import LangevinDynamics
    from ebm.nets.targets import GaussianMixtureEnergy

    energies = {
        "gaussian": lambda: lambda x: 0.5 * x.square().sum(1),
        "double-well": lambda: lambda x: 2 * (x.square() - 1).square().sum(1),
        "mixture": lambda: GaussianMixtureEnergy(torch.tensor(MEANS), std=0.7),
    }
    sampler, target = LangevinDynamics(step_size), energies[energy]()
    return lambda x, steps: sampler.sample(target, x, steps=steps)


LIBRARIES = {"torchebm": torchebm, "ebmkit": ebmkit}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("energy", choices=["gaussian", "double-well", "mixture"])
    parser.add_argument("--chains", type=int, default=1_000)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--step-size", type=float, default=0.1)
    parser.add_argument("--repeats", type=int, default=5, help="runs that are timed, after one that is not")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    sample = LIBRARIES[options.library](options.energy, options.step_size)
    seconds, moments = [], []
    for number in range(options.repeats + 1):
        start = time.perf_counter()
        end = sample(torch.zeros(options.chains, 2), options.steps)
        if number:
            seconds.append(time.perf_counter() - start)
            moments.append(end.square().mean().item())
    device = f"{options.library} {importlib.metadata.version(options.library)} on torch {torch.__version__}"
    print(json.dumps({"device": device, "seconds": seconds, "second_moment": sum(moments) / len(moments)}))


main()
