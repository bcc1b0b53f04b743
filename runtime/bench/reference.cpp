#include "bench/reference.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "ops/comparison.hpp"
#include "ops/op.hpp"
#include "ops/values.hpp"

namespace gpunn::bench {

using graph::OpSignature;
using ops::ReferenceTensor;

namespace {

// Work that references do in well under a second.
constexpr double kWholeWork = 4e7, kPartWork = 4e7;

// How an op can be cut: two ranges of its outputs, each with the dimensions that it is in; {-1, -1}: nowhere.
struct Cut {
  int64_t size[2] = {1, 1};
  std::vector<std::array<int, 2>> inputs;  // by input, the dimension of the first and of the second range
  std::array<int, 2> output = {-1, -1};
};

Cut cut_of_matmul(const OpSignature& s) {
  const bool fused = s.op == GPUNN_OP_MATMUL_BIAS_ACTIVATION;
  const auto plain = s.attrs.as<gpunn_matmul_attrs>();
  const auto biased = s.attrs.as<gpunn_matmul_bias_activation_attrs>();
  const int row = (fused ? biased.transpose_a : plain.transpose_a) != 0 ? 1 : 0;
  const int column = (fused ? biased.transpose_b : plain.transpose_b) != 0 ? 0 : 1;
  Cut cut{{s.outputs[0].shape[0], s.outputs[0].shape[1]}, {{row, -1}, {-1, column}}, {0, 1}};
  if (fused) cut.inputs.push_back({-1, 0});
  return cut;
}

// Images and filters, images and channels, or filters and channels.
Cut cut_of_convolution(const OpSignature& s) {
  const bool whole_filters = s.attrs.as<gpunn_conv2d_attrs>().groups != 1;
  Cut cut{{s.outputs[0].shape[0], s.outputs[0].shape[1]}, {}, {0, 1}};
  switch (s.op) {
    case GPUNN_OP_CONV2D_BACKWARD_DATA:
      cut.inputs = {{0, -1}, {-1, 1}};
      break;
    case GPUNN_OP_CONV2D_BACKWARD_FILTER:
      cut.inputs = {{1, -1}, {-1, 1}};
      if (whole_filters) cut.size[0] = 0;
      break;
    default:
      cut.inputs = {{0, -1}, {-1, 0}, {-1, 0}};
      cut.inputs.resize(s.inputs.size());
  }
  if (whole_filters) cut.size[1] = 0;
  return cut;
}

// Whether row i of each output is of row i of each input, and of nothing else.
bool row_by_row(const OpSignature& s) {
  const bool pointwise = s.op >= GPUNN_OP_ADD && s.op <= GPUNN_OP_ERF && s.op != GPUNN_OP_FILL;
  const bool pooling = s.op >= GPUNN_OP_MAX_POOL2D && s.op <= GPUNN_OP_REFLECT_PAD2D_BACKWARD;
  const bool softmax = s.op >= GPUNN_OP_SOFTMAX && s.op <= GPUNN_OP_LOG_SOFTMAX_BACKWARD;
  const bool attention = s.op == GPUNN_OP_ATTENTION || s.op == GPUNN_OP_ATTENTION_BACKWARD;
  const bool loss = s.op >= GPUNN_OP_NLL_LOSS && s.op <= GPUNN_OP_SOFT_CROSS_ENTROPY_BACKWARD;
  if (!pointwise && !pooling && !softmax && !attention && !loss) return false;
  const auto has_rows = [&](const TensorType& type) {
    const Shape& y = s.outputs[0].shape;
    return !type.shape.empty() && type.shape[0] == y[0] && (!pointwise || type.shape.size() == y.size());
  };
  return !s.outputs[0].shape.empty() && std::ranges::all_of(s.inputs, has_rows) &&
         std::ranges::all_of(s.outputs, has_rows);
}

std::optional<Cut> cut_of(const OpSignature& s) {
  switch (s.op) {
    case GPUNN_OP_MATMUL:
    case GPUNN_OP_MATMUL_BIAS_ACTIVATION:
      return cut_of_matmul(s);
    case GPUNN_OP_CONV2D:
    case GPUNN_OP_CONV2D_BACKWARD_DATA:
    case GPUNN_OP_CONV2D_BACKWARD_FILTER:
    case GPUNN_OP_CONV2D_BIAS_ACTIVATION:
      return cut_of_convolution(s);
    default:
      break;
  }
  if (!row_by_row(s)) return std::nullopt;
  return Cut{{s.outputs[0].shape[0], 0}, std::vector<std::array<int, 2>>(s.inputs.size(), {0, -1}), {0, -1}};
}

// `count` of 0 to n-1, the first and the last among them.
std::vector<int64_t> spread(int64_t count, int64_t n) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) indices.push_back(count == 1 ? n / 2 : i * (n - 1) / (count - 1));
  return indices;
}

Slice slice_of(const TensorType& type, const std::array<int, 2>& dims, const std::vector<int64_t> (&kept)[2]) {
  Slice slice(type.shape.size());
  for (std::size_t i = 0; i < 2; ++i) {
    if (dims[i] >= 0 && !kept[i].empty()) slice[static_cast<std::size_t>(dims[i])] = kept[i];
  }
  return slice;
}

TensorType type_of(const TensorType& whole, const Slice& slice) {
  TensorType type = whole;
  type.layout = Layout::packed;  // the reference goes by indices
  for (std::size_t d = 0; d < slice.size(); ++d) {
    if (slice[d]) type.shape[d] = static_cast<int64_t>(slice[d]->size());
  }
  return type;
}

ReferenceTensor taken(const TensorType& whole, const std::vector<std::byte>& bytes, const Slice& slice) {
  const TensorType type = type_of(whole, slice);
  const std::size_t size = size_of(type.dtype);
  std::vector<std::byte> part(type.bytes());
  const std::vector<int64_t> strides = strides_of(whole);
  std::vector<int64_t> at(type.shape.size(), 0);
  for (std::size_t i = 0; i < part.size() / size; ++i) {
    int64_t offset = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
      offset += (slice[d] ? (*slice[d])[static_cast<std::size_t>(at[d])] : at[d]) * strides[d];
    }
    std::copy_n(bytes.data() + static_cast<std::size_t>(offset) * size, size, part.data() + i * size);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < type.shape[d]) break;
      at[d] = 0;
    }
  }
  return ops::decode(type, part);
}

double work_of(const OpSignature& s) {
  double elements = 0;
  for (const auto* types : {&s.inputs, &s.outputs}) {
    for (const TensorType& type : *types) elements += static_cast<double>(type.elements());
  }
  return std::max(ops::flops_of(s), elements);
}

}  // namespace

std::optional<Reference> Reference::of(const OpSignature& signature, const std::vector<Bytes>& inputs) {
  Reference reference;
  reference.whole_ = reference.part_ = signature;
  std::vector<int64_t> kept[2];
  Cut cut{{0, 0}, std::vector<std::array<int, 2>>(inputs.size(), {-1, -1}), {-1, -1}};
  if (double work = work_of(signature); work > kWholeWork) {
    const std::optional<Cut> found = cut_of(signature);
    if (!found) return std::nullopt;
    cut = *found;
    int64_t count[2] = {cut.size[0], cut.size[1]};
    // Evenly, until it is little enough.
    while (work > kPartWork && std::max(count[0], count[1]) > 1) {
      int64_t& larger = count[0] >= count[1] ? count[0] : count[1];
      const int64_t half = (larger + 1) / 2;
      work *= static_cast<double>(half) / static_cast<double>(larger);
      larger = half;
    }
    if (work > 10 * kPartWork) return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i) kept[i] = spread(count[i], cut.size[i]);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Slice slice = slice_of(signature.inputs[i], cut.inputs[i], kept);
    reference.part_.inputs[i] = type_of(signature.inputs[i], slice);
    reference.inputs_.push_back(taken(signature.inputs[i], inputs[i], slice));
  }
  for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
    reference.output_slices_.push_back(slice_of(signature.outputs[i], cut.output, kept));
    reference.part_.outputs[i] = type_of(signature.outputs[i], reference.output_slices_.back());
  }
  reference.expected_ = ops::run_reference(reference.part_, reference.inputs_);
  return reference;
}

Reference::Deviation Reference::judge(const std::vector<Bytes>& outputs, Precision precision) {
  std::vector<ops::Tolerance>& tolerances = tolerances_[precision];
  if (tolerances.empty()) {
    const ops::Evaluation evaluation{part_, inputs_, expected_, {}, precision};
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      tolerances.push_back(ops::tolerance_of(evaluation, i));
    }
  }
  Deviation result;
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    const ReferenceTensor found = taken(whole_.outputs[i], outputs[i], output_slices_[i]);
    const ops::Comparison comparison = ops::compare(expected_[i], found, tolerances[i], "output " + std::to_string(i));
    result.allowed = std::max(result.allowed, comparison.error);
    if (result.detail.empty()) result.detail = comparison.detail;
    double largest = 0, difference = 0;
    for (std::size_t e = 0; e < found.values.size(); ++e) {
      const double expected = expected_[i].values[e];
      if (!std::isfinite(expected)) continue;
      largest = std::max(largest, std::abs(expected));
      // A NaN is no small difference.
      const double off = std::abs(found.values[e] - expected);
      difference = std::isnan(off) ? std::numeric_limits<double>::infinity() : std::max(difference, off);
    }
    if (difference > 0) result.error = std::max(result.error, difference / (largest > 0 ? largest : 1));
    result.checked += static_cast<int64_t>(found.values.size());
  }
  return result;
}

}  // namespace gpunn::bench
