"""Builds a TensorRT engine from an ONNX file of `gpunn export` and times it, a line of JSON a batch size.

python3 bench/peers/tensorrt.py lenet.onnx --batch 1,8,64 --precision fp16

Needs the packages tensorrt (10) and torch with CUDA, whose tensors are the engine's inputs and outputs. QDQ nodes of a
quantised file are taken with --precision int8.
"""

import argparse
import json
import statistics
import sys

PRECISIONS = {"fp32": (), "tf32": ("TF32",), "fp16": ("FP16",), "bf16": ("BF16",), "int8": ("INT8", "FP16")}


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", help="an ONNX file; external data is read from beside it")
    parser.add_argument("--batch", default="1,8,64", help="batch sizes, with commas between")
    parser.add_argument("--precision", choices=list(PRECISIONS), default="tf32")
    parser.add_argument("--calls", type=int, default=200, help="that are timed")
    parser.add_argument("--warmup", type=int, default=20, help="calls before")
    parser.add_argument("--workspace", type=int, default=4096, help="MiB that tactics may take")
    parser.add_argument("--save", help="write the engine of the first batch size to this file")
    return parser.parse_args()


def build(trt, logger, args, rows):
    """The engine for batches of `rows`, serialised."""
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(args.model):
        errors = [str(parser.get_error(i)) for i in range(parser.num_errors)]
        sys.exit("TensorRT can't parse " + args.model + ":\n" + "\n".join(errors))
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, args.workspace << 20)
    config.clear_flag(trt.BuilderFlag.TF32)
    for flag in PRECISIONS[args.precision]:
        config.set_flag(getattr(trt.BuilderFlag, flag))
    profile = builder.create_optimization_profile()
    for i in range(network.num_inputs):
        tensor = network.get_input(i)
        shape = (rows, *tuple(tensor.shape)[1:])
        profile.set_shape(tensor.name, shape, shape, shape)
    config.add_optimization_profile(profile)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        sys.exit("TensorRT builds no engine; its messages above say why")
    return engine


def buffers(trt, torch, engine, context, rows):
    """A tensor for each input and output, which the context is told of."""
    types = {
        trt.DataType.FLOAT: torch.float32,
        trt.DataType.HALF: torch.float16,
        trt.DataType.UINT8: torch.uint8,
        trt.DataType.INT64: torch.int64,
    }
    names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    inputs = [name for name in names if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT]
    for name in inputs:
        context.set_input_shape(name, (rows, *tuple(engine.get_tensor_shape(name))[1:]))
    kept = []
    for name in names:
        shape, dtype = tuple(context.get_tensor_shape(name)), types[engine.get_tensor_dtype(name)]
        if name in inputs and dtype == torch.uint8:
            tensor = torch.randint(0, 256, shape, dtype=dtype, device="cuda")
        elif name in inputs:
            tensor = torch.randn(shape, dtype=dtype, device="cuda")
        else:
            tensor = torch.empty(shape, dtype=dtype, device="cuda")
        context.set_tensor_address(name, tensor.data_ptr())
        kept.append(tensor)
    return kept


def milliseconds(torch, context, stream, args):
    """Of each call, by events."""
    times = []
    for call in range(args.warmup + args.calls):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(stream)
        if not context.execute_async_v3(stream.cuda_stream):
            sys.exit("TensorRT did not run the engine; its messages above say why")
        end.record(stream)
        end.synchronize()
        if call >= args.warmup:
            times.append(begin.elapsed_time(end))
    return sorted(times)


def main():
    args = options()
    try:
        import tensorrt as trt
        import torch
    except ImportError as missing:
        sys.exit(f"needs the packages tensorrt and torch: {missing}")
    logger = trt.Logger(trt.Logger.WARNING)
    runtime = trt.Runtime(logger)
    for i, rows in enumerate(int(size) for size in args.batch.split(",")):
        plan = build(trt, logger, args, rows)
        if i == 0 and args.save:
            with open(args.save, "wb") as file:
                file.write(plan)
        engine = runtime.deserialize_cuda_engine(plan)
        context = engine.create_execution_context()
        stream = torch.cuda.Stream()
        kept = buffers(trt, torch, engine, context, rows)
        torch.cuda.synchronize()
        times = milliseconds(torch, context, stream, args)
        p50 = statistics.median(times)
        report = {
            "framework": f"TensorRT {trt.__version__}",
            "model": args.model,
            "precision": args.precision,
            "batch": rows,
            "p50_ms": round(p50, 4),
            "p99_ms": round(times[int(0.99 * (len(times) - 1))], 4),
            "images_per_s": round(1000 * rows / p50, 1),
            "device_bytes": engine.device_memory_size_v2,
            "io_tensors": len(kept),
        }
        print(json.dumps(report))


if __name__ == "__main__":
    main()
