"""The inputs that fuzzing begins with: files of the repository, and small binary ones that are made here."""

import gzip
import io
import shutil
import struct
import tarfile
import zlib
from pathlib import Path


def png(width, height, colour, depth=8):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    rows = b"".join(b"\0" + bytes(range(width * channels * depth // 8)) for _ in range(height))
    palette = chunk(b"PLTE", bytes(range(48))) if colour == 3 else b""
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)) +
            palette + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def idx(*shape):
    count = 1
    for size in shape:
        count *= size
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + bytes(i % 251 for i in range(count))


def safetensors(header, values):
    return struct.pack("<Q", len(header)) + header + values


class Onnx:
    """ONNX's messages in protobuf's encoding, as far as small networks need them."""

    @staticmethod
    def varint(value):
        out, value = bytearray(), value & (1 << 64) - 1
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes(out) + bytes([value])

    @staticmethod
    def number(field, value):
        return Onnx.varint(field << 3) + Onnx.varint(value)

    @staticmethod
    def part(field, content):
        content = content.encode() if isinstance(content, str) else content
        return Onnx.varint(field << 3 | 2) + Onnx.varint(len(content)) + content

    @staticmethod
    def tensor(name, shape, values, floats=True):
        raw = struct.pack(f"<{len(values)}{'f' if floats else 'q'}", *values)
        return (b"".join(Onnx.number(1, size) for size in shape) + Onnx.number(2, 1 if floats else 7) +
                Onnx.part(8, name) + Onnx.part(9, raw))

    @staticmethod
    def node(op, inputs, outputs, domain="", **attributes):
        def attribute(name, value):
            if isinstance(value, list):
                return Onnx.part(1, name) + b"".join(Onnx.number(8, one) for one in value) + Onnx.number(20, 7)
            if isinstance(value, str):
                return Onnx.part(1, name) + Onnx.part(4, value) + Onnx.number(20, 3)
            return Onnx.part(1, name) + Onnx.number(3, value) + Onnx.number(20, 2)
        return (b"".join(Onnx.part(1, one) for one in inputs) + b"".join(Onnx.part(2, one) for one in outputs) +
                Onnx.part(4, op) + (Onnx.part(7, domain) if domain else b"") +
                b"".join(Onnx.part(5, attribute(*one)) for one in attributes.items()))

    @staticmethod
    def model(row, nodes, tensors=(), functions=b"", opset=18):
        dims = Onnx.part(1, Onnx.part(2, "n")) + b"".join(Onnx.part(1, Onnx.number(1, size)) for size in row)
        input_ = Onnx.part(1, "x") + Onnx.part(2, Onnx.part(1, Onnx.number(1, 1) + Onnx.part(2, dims)))
        graph = (b"".join(Onnx.part(1, one) for one in nodes) + Onnx.part(2, "g") +
                 b"".join(Onnx.part(5, one) for one in tensors) + Onnx.part(11, input_) +
                 Onnx.part(12, Onnx.part(1, "y")))
        return Onnx.number(1, 8) + Onnx.part(7, graph) + Onnx.part(8, Onnx.number(2, opset)) + functions


def onnx_models():
    node, tensor, model = Onnx.node, Onnx.tensor, Onnx.model
    w = tensor("w", (2, 1, 2, 2), [1.0] * 8)
    yield model((1, 4, 4), [node("Conv", ["x", "w"], ["c"], pads=[1, 0, 0, 1], strides=[1, 2]), node("Relu", ["c"], ["r"]),
                            node("AveragePool", ["r"], ["p"], kernel_shape=[2, 2], ceil_mode=1),
                            node("Flatten", ["p"], ["y"])], [w])
    yield model((4,), [node("MatMul", ["x", "m"], ["p"]), node("Add", ["p", "b"], ["s"]),
                       node("Softmax", ["s"], ["y"], axis=-1)],
                [tensor("m", (4, 2), [0.5] * 8), tensor("b", (2,), [1.0, 2.0])])
    yield model((4, 2, 2), [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"], axis=0),
                            node("Concat", ["n", "rest"], ["to"], axis=0), node("Reshape", ["x", "to"], ["r"]),
                            node("Transpose", ["r"], ["t"], perm=[0, 2, 1, 3]), node("Split", ["t"], ["a", "b"], axis=1),
                            node("Concat", ["b", "a"], ["y"], axis=2)],
                [tensor("zero", (1,), [0], False), tensor("rest", (3,), [2, 2, 4], False)])
    yield model((1, 2, 2), [node("Resize", ["x", "", "k"], ["u"], mode="nearest"), node("Pad", ["u", "p"], ["q"]),
                            node("Slice", ["q", "b", "e", "b"], ["y"])],
                [tensor("k", (4,), [1.0, 1.0, 2.0, 2.0]), tensor("p", (8,), [0, 0, 1, -1, 0, 0, 0, 1], False),
                 tensor("b", (1,), [1], False), tensor("e", (1,), [9], False)])
    body = (Onnx.part(1, "F") + Onnx.part(4, "i") + Onnx.part(5, "o") + Onnx.part(7, node("Sigmoid", ["i"], ["m"])) +
            Onnx.part(7, node("Mul", ["i", "m"], ["o"])) + Onnx.part(9, Onnx.number(2, 18)) + Onnx.part(10, "f"))
    yield model((2,), [node("F", ["x"], ["h"], "f"), node("F", ["h"], ["y"], "f")], functions=Onnx.part(25, body))
    yield model((2,), [node("ConstantOfShape", ["n"], ["c"]), node("Mul", ["x", "c"], ["y"])],
                [tensor("n", (1,), [2], False)])


def cifar_archive(record):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
            info = tarfile.TarInfo("cifar-10-batches-bin/" + name)
            info.size = len(record)
            archive.addfile(info, io.BytesIO(record))
    return out.getvalue()


# A JPEG of one grey pixel.
JPEG = bytes.fromhex(
    "ffd8ffe000104a46494600010101004800480000ffdb004300" + "03" * 64 + "ffc0000b080001000101011100"
    "ffc40014000100000000000000000000000000000009" "ffc40014100100000000000000000000000000000000"
    "ffda0008010100003f0054dfffd9")


def made(name):
    if name == "image":
        yield from (png(3, 2, colour) for colour in (0, 2, 3, 4, 6))
        yield png(2, 2, 2, 16)
        yield JPEG
        yield b"P5\n# x\n2 2\n255\n\0\1\2\3"
        yield b"P6 1 1 65535\n\0\1\2\3\4\5"
    elif name == "pack":
        yield struct.pack("<QQIQ", 0, 0, 0, 0)
        files = b"".join(struct.pack("<I", len(p)) + p + struct.pack("<QQI", 16, 8, 7) for p in (b"a/1.jpg", b"b/2.png"))
        yield struct.pack("<Q", 7) + b"/photos" + struct.pack("<QIQ", 2, 5, 2) + files
    elif name == "idx":
        yield idx(2, 3, 3)
        yield idx(5)
        yield gzip.compress(idx(2, 3, 3), mtime=0)
    elif name == "cifar":
        record = bytes([3]) + bytes(i % 256 for i in range(3072))
        yield b"\0" + record
        yield b"\1" + cifar_archive(record)
    elif name == "safetensors":
        yield safetensors(b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"x":"y"}}  ', bytes(8))
        yield safetensors(b'{"a":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},'
                          b'"b":{"dtype":"I64","shape":[],"data_offsets":[4,12]}}', bytes(12))
    elif name == "onnx":
        yield from onnx_models()
    elif name == "csv":
        yield b"x,y,label\n1,2,a\n3,4,b\n5,6,a\n7,8,b\n"
        yield b'"x ""q""",label\r\n1e3,"a\nb"\r\n-2,c\r\n'
    elif name == "infer_request":
        for json, rest in ((b'{"id":"1","inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","data":[[1,2.5]]}]}', b""),
                           (b'{"inputs":[{"name":"x","shape":[2],"datatype":"UINT8","parameters":{"binary_data_size":2}}],'
                            b'"outputs":[{"name":"p","parameters":{"classification":3,"binary_data":true}}],'
                            b'"parameters":{"binary_data_output":true,"timeout":5}}', b"ab")):
            yield struct.pack("<H", len(json)) + json + rest
    elif name == "form":
        yield (b'multipart/form-data; boundary="B"\n--B\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n'
               b"Content-Type: image/png\r\n\r\nbytes\r\n--B--\r\n")
        yield b"/v2/models/a%20b/versions/1/infer?top=5&model=x+y"
        yield zlib.compress(b"a" * 1000)
        yield gzip.compress(b"body", mtime=0)
    elif name == "tuning_cache":
        yield b"gpunn tuning 1\nmatmul 8x8x8\tgemm:3\nconv\twinograd\n"
    elif name == "command_line":
        for line in ("run e.yaml --set a=b --epochs 3", "predict run x.png --row 0 --top 5", "check cpu --op matmul",
                     "bench op matmul 8x8x8", "data inspect mnist --sheet x.png", "help run", "--version"):
            yield line.replace(" ", "\n").encode()
    elif name == "name_table":
        yield b"conv1.weight: features.0.weight\n'*.bias': '*.b'\n"


def write(name, source, folder):
    project = Path(source).parent.parent
    shipped = {"experiment": "experiments/*.yaml", "model": "models/*.yaml", "name_table": "models/*.names.yaml",
               "checkpoint": "tests/fuzz/corpus/checkpoint/*"}
    for i, content in enumerate(made(name)):
        (folder / f"made-{i}").write_bytes(content)
    for file in project.glob(shipped[name]) if name in shipped else []:
        shutil.copy(file, folder / f"shipped-{file.name}")
