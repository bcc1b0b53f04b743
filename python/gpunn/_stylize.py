"""``gpunn.stylize`` and ``gpunn.paint``: pictures in the style of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from gpunn import _core
from gpunn._core import PaintedImage, StylizedImage, StylizeReport
from gpunn._experiment import PathLike, Settings, paths_of, settings_of


def stylize(
    content: PathLike,
    style: PathLike,
    to: PathLike,
    *,
    features: str = "vgg19",
    weights: PathLike | None = None,
    colours: Literal["centred", "standardised"] = "centred",
    steps: int = 500,
    optimizer: Literal["lbfgs", "adam"] = "lbfgs",
    learning_rate: float | None = None,
    history: int = 20,
    content_weight: float | None = None,
    style_weight: float | None = None,
    variation_weight: float = 0.0,
    content_layers: Sequence[str] = (),
    style_layers: Sequence[str] = (),
    original_colours: bool = False,
    from_noise: bool = False,
    seed: int = 1,
    size: int = 512,
    style_size: int = 0,
    preview_every: int = 0,
    precision: Literal["fp32", "tf32", "bf16"] = "fp32",
    backend: str = "auto",
    device: int = 0,
    threads: int = 0,
    report: Callable[[StylizeReport], object] | None = None,
) -> StylizedImage:
    """Paints the content of one picture in the style of another (Gatys, Ecker and Bethge, 2016).

    content, style: PNG, JPEG or binary PPM files. to: the PNG file to write.
    features: the network that compares pictures: ``"vgg19"`` or ``"squeezenet"``, whose ``weights`` are looked for in
        ``$GPUNN_DATA_DIR``; ``"drawn"``, which needs none; or a run folder, a checkpoint or an ONNX file.
    colours: how the weights expect colours: "centred" is 0 to 255 less ImageNet's mean, "standardised" is
        torchvision's.
    learning_rate: None: 1 of lbfgs, 0.02 of adam. history: steps that lbfgs remembers.
    content_weight, style_weight, content_layers, style_layers: None or empty: the network's own.
    original_colours: keep the colours of the content, and change its luma alone.
    size, style_size: pixels that the longer side of each picture is scaled to; 0: the content as it is, the style as
        the content.
    preview_every: steps between two previews, ``NAME.step100.png`` beside the result; 0: none.
    precision: what the factors of products are rounded to, where the backend has that.
    report: is called some hundred times at most, with how far it is. An exception in it ends the painting.

    Ctrl-C ends the painting and raises ``KeyboardInterrupt``; the file then has what there was. Raises
    :class:`MissingError` where a file is not there, :class:`UsageError` where options do not fit one another,
    :class:`DivergedError` where the loss stays NaN or infinite.
    """
    request = _core.StylizeRequest()
    request.content, request.style, request.to = Path(content), Path(style), Path(to)
    request.features = features
    if weights is not None:
        request.weights = Path(weights)
    request.set_colours(colours)
    request.steps, request.optimizer, request.history = steps, optimizer, history
    request.learning_rate = learning_rate
    request.content_weight, request.style_weight = content_weight, style_weight
    request.variation_weight = variation_weight
    request.content_layers, request.style_layers = list(content_layers), list(style_layers)
    request.original_colours, request.from_noise, request.seed = original_colours, from_noise, seed
    request.size, request.style_size, request.preview_every = size, style_size, preview_every
    request.set_precision(precision)
    request.backend, request.device, request.threads = backend, device, threads
    return _core.stylize(request, report)


def paint(
    model: PathLike,
    images: PathLike | Sequence[PathLike],
    to: PathLike,
    *,
    size: int = 0,
    style: int | None = None,
    original_colours: bool = False,
    damaged: str = "error",
    backend: str | None = None,
    set: Settings | None = None,
) -> list[PaintedImage]:
    """Paints images by a trained network of the task ``style_transfer``, in one pass each.

    model: a run, a run folder or a checkpoint. images: files, and folders of them.
    to: a PNG file for a single image, else a folder.
    size: pixels that the longer side of each is scaled to; 0: as it is.
    style: of a network of several, the only one to paint, from 0; None: all, as ``NAME.style0.png`` and so on.
    damaged: what becomes of damaged images. "error": one error names them once the others are painted; "skip": they are
        left out; "repair": the pixels that can be read are painted.

    Raises :class:`UsageError` where the model is of another task, :class:`MissingError` where an image is not there.
    """
    return _core.paint(
        Path(model),
        paths_of(images),
        Path(to),
        size,
        style,
        original_colours,
        damaged,
        settings_of(set, backend=backend),
    )
