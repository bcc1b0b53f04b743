#include <gpunn/bench.hpp>
#include <gpunn/ops.h>
#include <gpunn/random.h>

#include <algorithm>
#include <cstring>

#include "bench/op_request.hpp"
#include "bench/statistics.hpp"
#include "execution/backend.hpp"
#include "graph/op_info.hpp"

namespace gpunn {

namespace {

using execution::Backend;
using execution::Buffer;

// Random numbers in [-1, 1), or [0, 1): zeros would flatter a kernel.
std::vector<float> random_values(int64_t count, uint64_t stream, bool positive) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float unit = gpunn_random_unit(gpunn_philox(1, stream, i / 4).word[i % 4]);
    values[i] = positive ? unit : 2 * unit - 1;
  }
  return values;
}

Buffer filled(Backend& backend, const TensorType& type, uint64_t stream, bool positive) {
  Buffer buffer = backend.allocate_temporary(type.bytes());
  if (type.dtype == DType::f32) {
    const std::vector<float> values = random_values(type.elements(), stream, positive);
    backend.upload(buffer.data(), values.data(), type.bytes());
  } else {
    backend.fill(buffer.data(), 0, type.bytes());  // a counter
  }
  return buffer;
}

}  // namespace

BenchReport bench_op(const std::string& op, const std::string& shape, const BenchOptions& options) {
  const graph::OpSignature signature = bench::parse_request(op, shape);
  const plugins::PluginRegistry registry(options.plugins);
  Backend backend(registry, options.backend, {.device = 0, .threads = options.threads});
  const execution::Placement placement = backend.place(signature);
  if (placement.level < 0) throw Error("bench op " + op + " " + shape + ": " + placement.reason);
  execution::Kernel kernel = backend.create(signature, placement.level);

  const graph::OpInfo& info = graph::op_info(signature.op);
  // An optimizer's second moments are squares.
  const bool positive = signature.op == GPUNN_OP_ADAM_UPDATE || signature.op == GPUNN_OP_RMSPROP_UPDATE ||
                        signature.op == GPUNN_OP_ADAGRAD_UPDATE;
  std::vector<Buffer> buffers;
  std::vector<gpunn_tensor> inputs, outputs;
  for (const TensorType& type : signature.inputs) {
    buffers.push_back(filled(backend, type, buffers.size(), positive));
    inputs.push_back(execution::abi_tensor(type, buffers.back().data()));
  }
  for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
    const TensorType& type = signature.outputs[i];
    const int in_place = i < info.in_place.size() ? info.in_place[i] : -1;
    if (in_place >= 0) {
      outputs.push_back(inputs[static_cast<std::size_t>(in_place)]);
    } else {
      buffers.push_back(filled(backend, type, buffers.size(), positive));
      outputs.push_back(execution::abi_tensor(type, buffers.back().data()));
    }
  }
  const Buffer workspace =
      placement.workspace_bytes > 0 ? backend.allocate_temporary(placement.workspace_bytes) : Buffer();

  // Enough runs a sample to be well above the clock's grain, however small the op.
  const double flops = graph::flops_of(signature);
  const double bytes = graph::bytes_of(signature);
  const int runs = static_cast<int>(std::clamp(2e7 / std::max(flops + bytes, 1.0), 1.0, 1000.0));
  const std::string what(info.name);
  const auto sample = [&] {
    for (int i = 0; i < runs; ++i) kernel.enqueue(inputs, outputs, workspace.data(), what);
    backend.synchronize();
  };
  BenchReport report = bench::measure(sample, options, runs);
  report.what = what + " " + shape;
  report.backend = backend.chain()[static_cast<std::size_t>(placement.level)];
  report.gflops = flops / report.median_seconds * 1e-9;
  report.gigabytes = bytes / report.median_seconds * 1e-9;
  report.peak_bytes = backend.allocated_bytes();
  bench::add_pool(backend, report);
  return report;
}

}  // namespace gpunn
