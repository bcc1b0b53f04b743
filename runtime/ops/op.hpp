#pragma once

#include <gpunn/error.hpp>
#include <gpunn/op_signature.hpp>
#include <gpunn/ops.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"
#include "ops/case.hpp"
#include "ops/composition.hpp"
#include "ops/error_scale.hpp"
#include "ops/gradient.hpp"
#include "ops/reference.hpp"
#include "ops/request.hpp"

namespace gpunn::ops {

using graph::Attributes;
using graph::OpSignature;

// Sums of many such numbers stay in f32; their squares do not.
constexpr double kLargest = 1e30;
constexpr double kLargestSquared = 1e15;

// Everything that the host knows of an op. The file of its family contains the hand-written parts; the rest follows
// from the op's row in op_list.inc.
struct OpInfo {
  int32_t id = 0;

  // Appends the ops of the gradient; nullptr: none (nothing flows back).
  void (*gradient)(GradientContext& context) = nullptr;
  // It changes in jumps alone, so that its gradient is 0 and training goes on before it without one.
  bool steps = false;
  // The decomposition, which is used if no plugin serves the op; nullptr: a core op, which every backend needs.
  Decomposition decompose = nullptr;
  // Several ops in one kernel. The parts are used instead if a plugin higher in the chain serves one of them.
  bool composite = false;

  // Multiplications and additions of one run; nullptr: one an output element.
  double (*flops)(const OpSignature& signature) = nullptr;
  // Bytes that one run reads and writes; nullptr: every input and output once.
  double (*bytes)(const OpSignature& signature) = nullptr;

  // The op in float64 with plain loops, made to be checked by eye. It never uses the decomposition.
  void (*reference)(ReferenceCall& call) = nullptr;
  // How far off a correct kernel may be: a row for each output, or one for all of them.
  std::vector<ToleranceRow> tolerance = {};
  // Ordinary and awkward shapes and values, for `gpunn check`.
  std::vector<CaseSpec> (*cases)() = nullptr;
  // For an op with a gradient: small cases whose values stay away from kinks, so that differences approximate the
  // gradient.
  std::vector<CaseSpec> (*differentiable)() = nullptr;
  // A case from a training: a shape that is worth timing.
  CaseSpec typical = {};
  // A number so large that no intermediate result formed from one input leaves f32; likewise its inverse.
  double largest = kLargest;
  // A size of the row that is small in practice, as that of colours: kernels may be slow for large ones.
  std::string_view few = {};
  // The op at a shape that a user wrote for `gpunn bench op`.
  CaseSpec (*request)(Written& written) = nullptr;

  const Op* row = nullptr;
  std::string_view name = {};  // "CONV2D"
  int min_inputs = 0;
  int max_inputs = 0;
  // For output i, the input whose memory it shares; -1: it has its own memory.
  std::vector<int> in_place = {};
  // For output i, the inputs whose memory it may take over if no later node reads them, best first.
  std::vector<std::vector<int>> may_alias = {};

  // The output types. Throws Error on shapes that do not fit, with both.
  std::vector<TensorType> infer(const Attributes& attrs, std::span<const TensorType> inputs) const;
};

// The flops of an op that only moves data.
inline double no_flops(const OpSignature&) { return 0; }
// FLOPs for each element of the first output, or of an input.
template <int flops>
double flops_per_output(const OpSignature& signature) {
  return flops * static_cast<double>(signature.outputs.at(0).elements());
}
template <int flops, std::size_t input = 0>
double flops_per_input(const OpSignature& signature) {
  return flops * static_cast<double>(signature.inputs.at(input).elements());
}

// Multiplications and additions of one run.
double flops_of(const OpSignature& signature);
// The fewest bytes that one run must read and write: every tensor once, and of a table only the rows in use. Tensors
// changed in place count twice.
double bytes_of(const OpSignature& signature);
// Throws Error for an id that the catalogue lacks.
const OpInfo& op_info(int32_t id);
// The op of this name, in upper or lower case; nullptr if there is none.
const OpInfo* find_op(std::string_view name);

}  // namespace gpunn::ops
