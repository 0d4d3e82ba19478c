"""The workloads of benches/workloads.rs in PyTorch: seconds of whole training iterations as a line of JSON.

python jem_iteration.py cnn --iterations 3 [--threads 2 | --device cuda]
"""
import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, inputs, planes, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, planes, 3, padding=1)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, stride=stride)
        changes = stride != 1 or inputs != planes
        self.shortcut = nn.Conv2d(inputs, planes, 1, stride=stride) if changes else nn.Identity()

    def forward(self, x):
        y = self.conv1(F.leaky_relu(x, 0.2))
        return self.conv2(F.leaky_relu(y, 0.2)) + self.shortcut(x)


class WideResNet(nn.Module):
    def __init__(self, depth, width=1, classes=10):
        super().__init__()
        self.conv1, blocks, channels = nn.Conv2d(3, 16, 3, padding=1), [], 16
        for planes, stride in ((16 * width, 1), (32 * width, 2), (64 * width, 2)):
            for block in range((depth - 4) // 6):
                blocks.append(Block(channels, planes, stride if block == 0 else 1))
                channels = planes
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(channels, classes)

    def forward(self, x):
        return self.head(F.leaky_relu(self.blocks(self.conv1(x)), 0.2).mean((2, 3)))


def cnn(widths, classes=10):
    layers, channels = [], 3
    for index, width in enumerate(widths):
        layers += [nn.Conv2d(channels, width, 3, padding=1, stride=1 if index == 0 else 2), nn.LeakyReLU(0.2)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def mlp():
    return nn.Sequential(
        nn.Linear(2, 128), nn.LeakyReLU(0.2), nn.Linear(128, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1)
    )


WORKLOADS = {
    "mlp": (mlp, (256, 2), 1, 40),
    "cnn": (lambda: cnn((64, 128, 256)), (64, 3, 32, 32), 10, 20),
    "wrn-10-1": (lambda: WideResNet(10), (32, 3, 32, 32), 10, 20),
    "wrn-16-1": (lambda: WideResNet(16), (32, 3, 32, 32), 10, 20),
    "wrn-28-10": (lambda: WideResNet(28, 10), (64, 3, 32, 32), 10, 20),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tf32", action="store_true", help="matrix products of a GPU in TF32")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    torch.set_default_device(options.device)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = options.tf32
    make, shape, classes, steps = WORKLOADS[options.workload]
    network = make()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
    buffer = torch.rand(10_000, *shape[1:]) * 2 - 1
    x, labels = torch.rand(*shape) * 2 - 1, torch.arange(shape[0]) % classes
    parameters = list(network.parameters())

    def iteration():
        slots = torch.randint(len(buffer), (shape[0],))
        fresh = (torch.rand(shape[0]) < 0.05).view(-1, *[1] * (len(shape) - 1))
        chain = torch.where(fresh, torch.rand(*shape) * 2 - 1, buffer[slots])
        for parameter in parameters:  # no gradient in the weights while sampling
            parameter.requires_grad_(False)
        for _ in range(steps):
            chain.requires_grad_(True)
            gradient = torch.autograd.grad(network(chain).logsumexp(1).sum(), chain)[0]
            chain = (chain + gradient + 0.01 * torch.randn_like(chain)).detach()
        for parameter in parameters:
            parameter.requires_grad_(True)
        buffer[slots] = chain
        data, samples = network(x).logsumexp(1), network(chain).logsumexp(1)
        loss = F.cross_entropy(network(x), labels) + samples.mean() - data.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    seconds = []
    for number in range(options.iterations + 1):
        start = time.perf_counter()
        iteration()
        if number:
            seconds.append(time.perf_counter() - start)
    where = f"{options.threads} threads" if options.device == "cpu" else torch.cuda.get_device_name()
    version = f"torch {torch.__version__}, {where}"
    print(json.dumps({"workload": options.workload, "device": version, "seconds": seconds}))


main()
