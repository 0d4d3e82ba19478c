"""Checkpoints of this crate in PyTorch, and PyTorch's in this crate: the same weights give the same logits.

Run by hand, from the root of the repository, with any PyTorch from 2.0 on (tried: 2.9.0); DIR is an empty folder:

    JEM_PYTORCH_FOLDER=DIR cargo test --test suite -- --ignored --exact pytorch::files_for_pytorch
    python tests/reference/pytorch_roundtrip.py DIR
    JEM_PYTORCH_FOLDER=DIR cargo test --test suite -- --ignored --exact --nocapture pytorch::files_of_pytorch

The first command writes ours-*.pt with images and logits in ours-*.safetensors. This script loads them by
torch.load(.., weights_only=True) and a strict load_state_dict, compares the logits, and writes theirs-*.pt with
images and logits of its own. The last command reads those.
"""

import json
import struct
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

TOLERANCE = 1e-4  # of the largest logit


class Block(nn.Module):
    """Two 3x3 convolutions behind norms and activations; the second one has the stride."""

    def __init__(self, inputs, planes, stride, norm):
        super().__init__()
        self.bn1 = norm(inputs)
        self.conv1 = nn.Conv2d(inputs, planes, 3, padding=1)
        self.bn2 = norm(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride=stride, padding=1)
        reshapes = stride != 1 or inputs != planes
        self.shortcut = nn.Sequential(*([nn.Conv2d(inputs, planes, 1, stride=stride)] if reshapes else []))

    def forward(self, x):
        y = self.conv1(functional.leaky_relu(self.bn1(x), 0.2))
        y = self.conv2(functional.leaky_relu(self.bn2(y), 0.2))
        return y + self.shortcut(x)


class WideResNet(nn.Module):
    """The network up to its features, and a head that nothing uses."""

    def __init__(self, depth, width, norm, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1)
        inputs = 16
        for group in (1, 2, 3):
            planes = 8 * 2**group * width
            blocks = []
            for block in range((depth - 4) // 6):
                blocks.append(Block(inputs, planes, 2 if group > 1 and block == 0 else 1, norm))
                inputs = planes
            setattr(self, f"layer{group}", nn.Sequential(*blocks))
        self.bn1 = norm(inputs)
        self.linear = nn.Linear(inputs, 10)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.conv1(x))))
        return functional.leaky_relu(self.bn1(x), 0.2).mean((2, 3))


class Jem(nn.Module):
    """Features, the head of the joint model, and another head that nothing uses."""

    def __init__(self, depth, width, norm, channels, classes):
        super().__init__()
        norm = (lambda c: nn.BatchNorm2d(c, momentum=0.9)) if norm else (lambda c: nn.Identity())
        self.f = WideResNet(depth, width, norm, channels)
        self.energy_output = nn.Linear(64 * width, 1)
        self.class_output = nn.Linear(64 * width, classes)

    def forward(self, x):
        return self.class_output(self.f(x))


def model_for(state):
    """A model that fits a state dict."""
    blocks = len({key.split(".")[2] for key in state if key.startswith("f.layer1.")})
    width = state["f.layer1.0.conv1.weight"].shape[0] // 16
    norm = any("running_var" in key for key in state)
    classes = state["class_output.weight"].shape[0]
    return Jem(6 * blocks + 4, width, norm, state["f.conv1.weight"].shape[1], classes)


def read_safetensors(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    tensors = {}
    for name, entry in json.loads(content[8 : 8 + length]).items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32"
            first, last = (8 + length + offset for offset in entry["data_offsets"])
            values = torch.frombuffer(bytearray(content[first:last]), dtype=torch.float32)
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors):
    header, values = {}, b""
    for name, tensor in tensors.items():
        numbers = tensor.detach().contiguous().flatten().tolist()
        more = struct.pack(f"<{len(numbers)}f", *numbers)
        offsets = [len(values), len(values) + len(more)]
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": offsets}
        values += more
    header = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + values)


def check_ours(folder):
    count = 0
    for path in sorted(folder.glob("ours-*.pt")):
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        state = checkpoint["model_state_dict"]
        model = model_for(state)
        model.load_state_dict(state, strict=True)
        numbers = read_safetensors(path.with_suffix(".safetensors"))
        with torch.no_grad():
            logits = model.eval()(numbers["x"])
        residual = ((logits - numbers["logits"]).abs().max() / numbers["logits"].abs().max()).item()
        buffer = checkpoint["replay_buffer"]
        kind = "no buffer" if isinstance(buffer, list) else f"buffer {tuple(buffer.shape)}"
        print(f"{path.name}: {len(state)} tensors, {kind}, logits off by {residual:.1e}")
        assert residual < TOLERANCE
        assert buffer == [] if isinstance(buffer, list) else torch.equal(buffer, numbers["x"])
        count += 1
    assert count, "no file ours-*.pt"


def write_theirs(folder):
    torch.manual_seed(0)
    for name, configuration in {
        "dict": (16, 2, False, 3, 10),
        "batch": (10, 1, True, 3, 100),
        "bare": (10, 2, True, 1, 2),
        "half": (10, 1, False, 3, 10),
        "double": (10, 1, True, 3, 10),
        "legacy": (10, 1, True, 3, 10),
        "parameters": (10, 1, False, 3, 10),
    }.items():
        model = Jem(*configuration)
        channels = configuration[3]
        model.train()(torch.randn(8, channels, 32, 32))  # moves the running statistics
        if name == "half":
            model = model.half().float()
        state = model.state_dict()
        checkpoint = {"model_state_dict": state, "replay_buffer": torch.rand(7, channels, 32, 32) * 2 - 1}
        if name == "bare":
            checkpoint = state
        if name == "half":
            checkpoint["model_state_dict"] = {key: value.half() for key, value in state.items()}
        if name == "double":
            doubled = {k: v.double() if v.is_floating_point() else v for k, v in state.items()}
            checkpoint["model_state_dict"] = doubled
        if name == "parameters":  # not detached, and beside other things
            checkpoint["model_state_dict"] = dict(model.named_parameters())
            optimizer = torch.optim.Adam(model.parameters())
            checkpoint.update(epoch=3, best=0.5, optimizer_state_dict=optimizer.state_dict())
        torch.save(checkpoint, folder / f"theirs-{name}.pt", _use_new_zipfile_serialization=name != "legacy")
        x = torch.randn(3, channels, 32, 32)
        with torch.no_grad():
            logits = model.eval()(x)
        write_safetensors(folder / f"theirs-{name}.safetensors", {"x": x, "logits": logits})
        print(f"theirs-{name}.pt: {configuration}")


if __name__ == "__main__":
    check_ours(Path(sys.argv[1]))
    write_theirs(Path(sys.argv[1]))
