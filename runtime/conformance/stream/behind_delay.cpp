#include "conformance/stream/behind_delay.hpp"

#include <algorithm>
#include <memory>

#include "conformance/abi/raw_kernel.hpp"
#include "conformance/case_runner.hpp"
#include "conformance/stream/delay.hpp"
#include "execution/backend.hpp"
#include "graph/op_info.hpp"

namespace gpunn::conformance {

namespace {

constexpr double kDelay = 3;  // milliseconds
constexpr uint8_t kPoison = 0xC3;

using Memory = std::unique_ptr<RawMemory>;

Memory allocate(const RawChain& chain, uint64_t bytes) {
  return std::make_unique<RawMemory>(chain.bottom(), GPUNN_MEMORY_DEVICE, std::max<uint64_t>(bytes, 1));
}

std::vector<gpunn_tensor> tensors(const std::vector<TensorType>& types) {
  std::vector<gpunn_tensor> result;
  for (const TensorType& type : types) result.push_back(execution::abi_tensor(type, nullptr));
  return result;
}

}  // namespace

void run_behind_delay(const Case& test, Workbench& bench, CheckCase& result) {
  const RawChain& chain = bench.chain();
  const graph::OpSignature& signature = test.signature;
  std::vector<gpunn_tensor> in = tensors(signature.inputs), out = tensors(signature.outputs);
  const RawDescription description(signature.op, signature.attrs.data(), in, out, bench.options().precision);
  const RawKernel kernel(chain, description);
  if (!kernel.served()) {
    result.verdict = Verdict::unsupported;
    result.detail = kernel.reason();
    return;
  }

  const std::string& name = test.name;
  Random random(bench.options().seed, "stream" + name), other(bench.options().seed, "stale" + name);
  const std::vector<OracleTensor> inputs = test.inputs(random), stale = test.inputs(other);
  const Expectation expectation = expect_oracle(signature, inputs, bench.options().precision);

  std::vector<Memory> staged, inputs_there, outputs_there, results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<std::byte> content = encode(inputs[i]);
    staged.push_back(allocate(chain, content.size()));
    staged.back()->write(content);
    inputs_there.push_back(allocate(chain, content.size()));
    inputs_there.back()->write(encode(stale[i]));
    in[i].data = inputs_there.back()->data();
  }
  const std::vector<int>& in_place = graph::op_info(signature.op).in_place;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int input = i < in_place.size() ? in_place[i] : -1;
    outputs_there.push_back(input >= 0 ? nullptr : allocate(chain, signature.outputs[i].bytes()));
    results.push_back(allocate(chain, signature.outputs[i].bytes()));
    out[i].data = input >= 0 ? in[static_cast<std::size_t>(input)].data : outputs_there.back()->data();
  }
  const RawMemory workspace(chain.bottom(), GPUNN_MEMORY_DEVICE, std::max<uint64_t>(kernel.workspace_bytes(), 1));
  const gpunn_op_args args{.struct_size = sizeof(gpunn_op_args),
                           .n_inputs = static_cast<uint32_t>(in.size()),
                           .n_outputs = static_cast<uint32_t>(out.size()),
                           .reserved = 0,
                           .inputs = description.inputs(),
                           .outputs = description.outputs(),
                           .workspace = workspace.data(),
                           .workspace_bytes = kernel.workspace_bytes()};

  const RawStream stream(chain.bottom());
  const RawStream wrapper(kernel.device(), stream);
  bench.delay().enqueue(stream, kDelay);
  for (std::size_t i = 0; i < in.size(); ++i) stream.copy(*inputs_there[i], *staged[i]);
  for (const Memory& output : outputs_there) {
    if (output) stream.fill(*output, kPoison);
  }
  kernel.enqueue(wrapper.get(), args);
  for (std::size_t i = 0; i < out.size(); ++i) {
    stream.copy(results[i]->data(), out[i].data, signature.outputs[i].bytes(), GPUNN_DEVICE_TO_DEVICE);
  }
  stream.synchronize();

  for (std::size_t i = 0; i < out.size(); ++i) {
    std::vector<std::byte> bytes(signature.outputs[i].bytes());
    results[i]->read(bytes);
    const Comparison comparison = compare(expectation.outputs[i], decode(signature.outputs[i], bytes),
                                          expectation.tolerances[i], "output " + std::to_string(i));
    result.error = std::max(result.error, comparison.error);
    if (comparison.ok()) continue;
    result.verdict = Verdict::failed;
    result.detail = "on a stream that was busy, between copies of its inputs and its outputs, '" +
                    kernel.device().plugin().name() + "' gave " + comparison.detail +
                    ". Where the suite ops passes, the kernel runs on another stream than the one it is given, or the "
                    "host reads its inputs";
    return;
  }
}

}  // namespace gpunn::conformance
