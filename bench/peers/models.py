"""The networks of models/*.yaml, layer for layer, in PyTorch alone (torchvision is not needed)."""

import torch
from torch import nn


def lenet5():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def normed(channels, filters, kernel, stride=1):
    """A convolution that keeps the size at stride 1, and batch norm."""
    return [
        nn.Conv2d(channels, filters, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(filters),
    ]


class Residual(nn.Module):
    """A block of He et al. (2016): of two 3x3 convolutions, or a bottleneck of 1x1, 3x3 (which has the stride) and 1x1."""

    def __init__(self, channels, width, stride, bottleneck):
        super().__init__()
        filters = 4 * width if bottleneck else width
        if bottleneck:
            branch = normed(channels, width, 1) + [nn.ReLU()] + normed(width, width, 3, stride) + [nn.ReLU()]
            branch += normed(width, filters, 1)
        else:
            branch = normed(channels, width, 3, stride) + [nn.ReLU()] + normed(width, filters, 3)
        self.branch = nn.Sequential(*branch)
        project = stride != 1 or channels != filters
        self.shortcut = nn.Sequential(*normed(channels, filters, 1, stride)) if project else nn.Identity()

    def forward(self, x):
        return torch.relu(self.branch(x) + self.shortcut(x))


def resnet(depth, stem="cifar", classes=10):
    """ResNet-18, 34, 50 or 101, with the stems of models/resnet*.yaml: imagenet, cifar (32x32) or mnist (28x28, grey)."""
    blocks = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}[depth]
    bottleneck = depth >= 50
    if stem == "imagenet":
        layers = normed(3, 64, 7, 2) + [nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    elif stem == "cifar":
        layers = normed(3, 64, 3) + [nn.ReLU()]
    else:
        layers = normed(1, 64, 3, 2) + [nn.ReLU()]
    channels = 64
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for block in range(count):
            layers.append(Residual(channels, width, 2 if stage > 0 and block == 0 else 1, bottleneck))
            channels = 4 * width if bottleneck else width
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return model


class Espcn(nn.Module):
    """Shi et al. (2016); the layers learn what is missing from the enlarged image."""

    def __init__(self, scale, channels):
        super().__init__()
        self.scale = scale
        self.details = nn.Sequential(
            nn.Conv2d(channels, 64, 5, padding=2),
            nn.ReLU(),
            nn.Conv2d(64, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, channels * scale * scale, 3, padding=1),
            nn.PixelShuffle(scale),
        )

    def forward(self, x):
        larger = nn.functional.interpolate(x, scale_factor=float(self.scale), mode="bilinear", align_corners=False)
        return self.details(x) + larger


def espcn(scale=3, channels=1):
    return Espcn(scale, channels)


def vgg11(classes=10, hidden=512):
    """VGG-11 with batch norm for 32x32 images, as models/vgg11.yaml with pool 1."""
    layers, channels = [], 3
    for stage in ((64,), (128,), (256, 256), (512, 512), (512, 512)):
        for filters in stage:
            layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.ReLU()]
            channels = filters
        layers.append(nn.MaxPool2d(2))
    for units in (hidden, hidden):
        layers += [nn.Flatten(), nn.Linear(channels, units), nn.ReLU(), nn.Dropout(0.5)]
        channels = units
    return nn.Sequential(*layers, nn.Linear(channels, classes))


def depthwise(classes=10):
    """The network of bench/depthwise_cifar10.yaml: depthwise 3x3 and 1x1 convolutions."""
    layers, channels = normed(3, 32, 3) + [nn.ReLU()], 32
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1)):
        layers += [nn.Conv2d(channels, channels, 3, stride, 1, groups=channels, bias=False)]
        layers += [nn.BatchNorm2d(channels), nn.ReLU()] + normed(channels, filters, 1) + [nn.ReLU()]
        channels = filters
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
