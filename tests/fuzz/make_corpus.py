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
