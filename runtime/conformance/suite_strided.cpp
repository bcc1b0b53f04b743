// COPY is the one op whose tensors need not be packed. execution::Backend speaks of packed tensors alone, so these
// cases go through the bare table.
#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <algorithm>

#include "conformance/abi/raw_kernel.hpp"
#include "conformance/suites.hpp"
#include "ops/comparison.hpp"
#include "ops/values.hpp"

namespace gpunn::conformance {

using ops::compare;
using ops::Comparison;
using ops::decode;
using ops::encode;
using ops::Random;
using ops::ReferenceTensor;
using ops::rounded;
using ops::Tolerance;

namespace {

struct StridedCase {
  const char* name;
  Shape shape;
  DType from, to;
  std::vector<int64_t> source, target;  // strides
};

const StridedCase kCases[] = {
    {"transposed", {5, 7}, DType::f32, DType::f32, {1, 5}, {7, 1}},
    {"into a transposed tensor", {5, 7}, DType::f32, DType::f32, {7, 1}, {1, 5}},
    {"NCHW from NHWC", {2, 3, 5, 7}, DType::f32, DType::f32, {105, 1, 21, 3}, {105, 35, 7, 1}},
    {"rows with a gap", {33, 17}, DType::f32, DType::f32, {23, 1}, {17, 1}},
    {"into rows with a gap", {33, 17}, DType::f32, DType::f32, {17, 1}, {20, 1}},
    {"every third element", {101}, DType::f32, DType::f32, {3}, {1}},
    {"one row for all", {9, 13}, DType::f32, DType::f32, {0, 1}, {13, 1}},
    {"u8 with gaps to f32", {4, 6, 5}, DType::u8, DType::f32, {60, 8, 1}, {30, 5, 1}},
    {"i64 transposed to i32", {6, 11}, DType::i64, DType::i32, {1, 6}, {11, 1}},
    {"large and transposed", {513, 257}, DType::f32, DType::f32, {1, 513}, {257, 1}},
};

int64_t extent_of(const Shape& shape, const std::vector<int64_t>& stride) {
  int64_t last = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) last += (shape[i] - 1) * stride[i];
  return last + 1;
}

// Where element `index` (row-major) of the shape lies.
std::size_t offset_of(const Shape& shape, const std::vector<int64_t>& stride, int64_t index) {
  int64_t offset = 0;
  for (std::size_t i = shape.size(); i-- > 0;) {
    offset += index % shape[i] * stride[i];
    index /= shape[i];
  }
  return static_cast<std::size_t>(offset);
}

gpunn_tensor tensor_of(DType type, const Shape& shape, const std::vector<int64_t>& stride, void* data) {
  gpunn_tensor tensor{};
  tensor.struct_size = sizeof(tensor);
  tensor.dtype = static_cast<int32_t>(type);
  tensor.rank = static_cast<int32_t>(shape.size());
  tensor.data = data;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    tensor.dim[i] = shape[i];
    tensor.stride[i] = stride[i];
  }
  return tensor;
}

constexpr double kUntouched = 113;  // in the gaps of the target

void run_strided(const RawChain& chain, const StridedCase& test, uint64_t seed, CheckCase& result) {
  const int64_t count = element_count(test.shape);
  ReferenceTensor source{{test.from, {extent_of(test.shape, test.source)}}, {}};
  Random random(seed, test.name);
  for (int64_t i = 0; i < source.type.shape[0]; ++i) {
    source.values.push_back(rounded(random.uniform(0, 250), test.from));
  }
  ReferenceTensor expected{{test.to, {extent_of(test.shape, test.target)}}, {}};
  expected.values.assign(static_cast<std::size_t>(expected.type.shape[0]), kUntouched);
  const std::vector<std::byte> before = encode(expected);
  for (int64_t i = 0; i < count; ++i) {
    expected.values[offset_of(test.shape, test.target, i)] =
        rounded(source.values[offset_of(test.shape, test.source, i)], test.to);
  }

  const std::vector<std::byte> content = encode(source);
  const RawMemory from(chain.bottom(), GPUNN_MEMORY_DEVICE, content.size());
  const RawMemory to(chain.bottom(), GPUNN_MEMORY_DEVICE, before.size());
  from.write(content);
  to.write(before);
  std::vector<gpunn_tensor> in{tensor_of(test.from, test.shape, test.source, nullptr)};
  std::vector<gpunn_tensor> out{tensor_of(test.to, test.shape, test.target, nullptr)};
  const RawDescription description(GPUNN_OP_COPY, nullptr, in, out);
  const RawKernel kernel(chain, description);
  if (!kernel.served()) {
    result.verdict = Verdict::unsupported;
    result.detail = kernel.reason();
    return;
  }
  in[0].data = from.data();
  out[0].data = to.data();
  const RawMemory workspace(chain.bottom(), GPUNN_MEMORY_DEVICE, std::max<uint64_t>(kernel.workspace_bytes(), 1));
  kernel.enqueue(kernel.device().stream(), description, workspace);
  kernel.device().synchronize();

  std::vector<std::byte> bytes(before.size());
  to.read(bytes);
  const Tolerance exact{std::vector<double>(expected.values.size(), 0), "a copy, and what lies between stays as it is"};
  const Comparison comparison = compare(expected, decode(expected.type, bytes), exact, "element ");
  result.error = comparison.error;
  if (comparison.ok()) return;
  result.verdict = Verdict::failed;
  result.detail = comparison.detail;
}

}  // namespace

Checks strided_copies(const CheckOptions&) {
  Checks checks;
  for (const StridedCase& test : kCases) {
    checks.push_back(make_check("ops", "COPY",
                                to_string(TensorType{test.from, test.shape}) + " -> " + std::string(name_of(test.to)) +
                                    ", strided, " + test.name));
    checks.back().op = GPUNN_OP_COPY;
    checks.back().labels.dtype = name_of(test.from);
    checks.back().run = [&test](Workbench& bench, CheckCase& result, const Note&) {
      run_strided(bench.chain(), test, bench.options().seed, result);
    };
  }
  return checks;
}

}  // namespace gpunn::conformance
