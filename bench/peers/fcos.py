"""The detector of models/fcos.yaml on a ResNet-18 in PyTorch, and what is learnt and found with it.

All shapes are fixed, so that a training step is one CUDA graph. Suppression alone is not: the number of its boxes
depends on the image. It is torchvision's.
"""

import torch
import torchvision
from models import Residual, normed
from torch import nn
from torch.nn import functional

STRIDES, WIDTH, DEPTH, GROUPS = (8, 16, 32), 128, 2, 16
RADIUS, REACH = 1.5, 8.0


def tower():
    layers = []
    for _ in range(DEPTH):
        layers += [nn.Conv2d(WIDTH, WIDTH, 3, padding=1), nn.GroupNorm(GROUPS, WIDTH), nn.ReLU()]
    return nn.Sequential(*layers)


class Fcos(nn.Module):
    """The answers [N, points, 5 + classes]: logarithms of distances to the sides, centerness, classes."""

    def __init__(self, classes=20):
        super().__init__()
        self.stem = nn.Sequential(*normed(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        channels, self.stages = 64, nn.ModuleList()
        for stage in range(4):
            width = 64 << stage
            first = Residual(channels, width, 2 if stage else 1, bottleneck=False)
            self.stages.append(nn.Sequential(first, Residual(width, width, 1, bottleneck=False)))
            channels = width
        self.lateral = nn.ModuleList(nn.Conv2d(width, WIDTH, 1) for width in (128, 256, 512))
        self.smooth = nn.ModuleList(nn.Conv2d(WIDTH, WIDTH, 3, padding=1) for _ in STRIDES)
        self.of_classes, self.of_boxes = tower(), tower()
        self.to_classes = nn.Conv2d(WIDTH, classes, 3, padding=1)
        self.to_sides, self.to_middle = nn.Conv2d(WIDTH, 4, 3, padding=1), nn.Conv2d(WIDTH, 1, 3, padding=1)
        self.scale = nn.Parameter(torch.ones(len(STRIDES)))
        nn.init.constant_(self.to_classes.bias, -4.595)  # a class is found at a hundredth of all points

    def forward(self, images):
        x, maps = self.stem(images), []
        for stage, block in enumerate(self.stages):
            x = block(x)
            if stage > 0:
                maps.append(x)
        merged = [lateral(x) for lateral, x in zip(self.lateral, maps, strict=True)]
        for i in (1, 0):
            merged[i] = merged[i] + functional.interpolate(merged[i + 1], scale_factor=2.0)
        answers = []
        for i, smooth in enumerate(self.smooth):
            x = smooth(merged[i])
            boxes = self.of_boxes(x)
            parts = [self.to_sides(boxes) * self.scale[i], self.to_middle(boxes), self.to_classes(self.of_classes(x))]
            answers.append(torch.cat(parts, 1).flatten(2).transpose(1, 2))
        return torch.cat(answers, 1).float()


def points_of(height, width, device):
    """The middles of all pixels of the maps with their strides, [points, 3]."""
    levels = []
    for stride in STRIDES:
        y = (torch.arange(height // stride, device=device) + 0.5) * stride
        x = (torch.arange(width // stride, device=device) + 0.5) * stride
        rows, columns = torch.meshgrid(y, x, indexing="ij")
        levels.append(torch.stack([columns.flatten(), rows.flatten(), torch.full_like(rows.flatten(), stride)], 1))
    return torch.cat(levels)


def boxes_of(output, points):
    step, place = points[:, 2:], points[:, :2]
    distances = output[..., :4].clamp(max=8).exp() * step
    return torch.cat([place - distances[..., :2], place + distances[..., 2:]], -1)


def assigned(points, boxes, classes):
    """Of boxes [N, M, 4] the one that each point learns: class (-1: none), box and centerness."""
    x, y, stride = points[:, 0, None], points[:, 1, None], points[:, 2, None]
    left, top, right, bottom = (boxes[:, None, :, i] for i in range(4))
    sides = torch.stack([x - left, y - top, right - x, bottom - y], -1)  # [N, P, M, 4]
    far = sides.amax(-1)
    middle = torch.maximum((sides[..., 2] - sides[..., 0]).abs(), (sides[..., 3] - sides[..., 1]).abs()) / 2
    fits = (sides.amin(-1) > 0) & (middle < RADIUS * stride) & (classes[:, None] >= 0)
    fits &= (far > REACH / 2 * stride) | (stride <= STRIDES[0])
    fits &= (far <= REACH * stride) | (stride >= STRIDES[-1])
    area = ((right - left) * (bottom - top)).masked_fill(~fits, torch.inf)
    least, index = area.min(-1)
    some = least < torch.inf
    box = boxes.gather(1, index[..., None].expand(-1, -1, 4))
    label = torch.where(some, classes.gather(1, index), -1)
    own = sides.gather(2, index[..., None, None].expand(-1, -1, 1, 4)).squeeze(2).clamp(min=1e-6)
    across, along = own[..., 0::2], own[..., 1::2]
    balance = across.amin(-1) / across.amax(-1) * (along.amin(-1) / along.amax(-1))
    return label, box, torch.where(some, balance.sqrt(), 0)


def giou_loss(a, b):
    """As torchvision.ops.generalized_box_iou_loss, which picks boxes by a mask: no graph takes that."""

    def area(low, high):
        sides = (high - low).clamp(min=0)
        return sides[..., 0] * sides[..., 1]  # the gradient of prod() asks the GPU for zeros: no graph takes that

    inner = area(torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:]))
    outer = area(torch.minimum(a[..., :2], b[..., :2]), torch.maximum(a[..., 2:], b[..., 2:]))
    union = area(a[..., :2], a[..., 2:]) + area(b[..., :2], b[..., 2:]) - inner
    return 1 - inner / (union + 1e-7) + (outer - union) / (outer + 1e-7)


def loss_of(output, points, boxes, classes):
    """The focal loss of the classes, the generalised overlap of boxes, the cross-entropy of the centerness."""
    label, box, centerness = assigned(points, boxes, classes)
    some = (label >= 0).float()
    logits = output[..., 5:]
    target = functional.one_hot((label + 1).long(), logits.shape[-1] + 1)[..., 1:].float()
    count, weight = some.sum().clamp(min=1), centerness.sum().clamp(min=1)
    of_class = torchvision.ops.sigmoid_focal_loss(logits, target, 0.25, 2.0, reduction="sum")
    of_box = giou_loss(boxes_of(output, points), box)
    of_middle = functional.binary_cross_entropy_with_logits(output[..., 4], centerness, reduction="none")
    # A point without a box has one of no area, whose loss counts nothing.
    shared = (torch.where(some > 0, of_box, 0) * centerness).sum() / weight
    return (of_class + (of_middle * some).sum()) / count + shared


class Candidates(nn.Module):
    """The network with decoding: boxes [points, 4] and scores [points, classes] of one image."""

    def __init__(self, network, height, width, device):
        super().__init__()
        self.network = network
        self.register_buffer("points", points_of(height, width, device))

    def forward(self, images):
        output = self.network(images)
        scores = (output[..., 5:].sigmoid() * output[..., 4:5].sigmoid()).sqrt()
        return boxes_of(output, self.points)[0], scores[0]


def found(boxes, scores, least_score=0.05, overlap=0.6, most=100):
    """Suppression by class; reads on the host how many boxes there are."""
    place, category = (scores > least_score).nonzero(as_tuple=True)
    score = scores[place, category]
    kept = torchvision.ops.batched_nms(boxes[place], score, category, overlap)[:most]
    return boxes[place][kept], score[kept], category[kept]
