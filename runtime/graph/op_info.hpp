#pragma once

#include <gpunn/error.hpp>
#include <gpunn/op_signature.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/composition.hpp"
#include "graph/graph.hpp"

namespace gpunn::graph {

class GradientContext;

// What the host knows of an op. One table a family in graph/ops/ has what code says; the rest follows from the op's row
// in op_list.inc.
struct OpInfo {
  int32_t id = 0;

  // Appends the ops of the gradient; nullptr: none (nothing flows back).
  void (*gradient)(GradientContext& context) = nullptr;
  // What it is made of where no plugin serves it; nullptr: a core op, which every backend needs.
  Decomposition decompose = nullptr;
  // Several ops in one kernel. Its parts are taken instead where a plugin that is higher in the chain serves one.
  bool composite = false;

  // Multiplications and additions of one run; nullptr: one an output element.
  double (*flops)(const OpSignature& signature) = nullptr;
  // Bytes that one run reads and writes; nullptr: every input and output once.
  double (*bytes)(const OpSignature& signature) = nullptr;
  // "stride 2x2, pad 1x1"; nullptr: no attributes worth showing.
  std::string (*describe)(const Attributes& attrs) = nullptr;

  const ops::Op* row = nullptr;
  std::string_view name = {};  // "CONV2D"
  int min_inputs = 0;
  int max_inputs = 0;
  // For output i, the input whose memory it is; -1: memory of its own.
  std::vector<int> in_place = {};
  // For output i, the inputs whose memory it may take over if nobody reads them later, best first.
  std::vector<std::vector<int>> may_alias = {};

  // The output types. Throws Error on shapes that do not fit, with both.
  std::vector<TensorType> infer(const Attributes& attrs, std::span<const TensorType> inputs) const;
};

// The flops of an op that only moves data.
inline double no_flops(const OpSignature&) { return 0; }

// Multiplications and additions of one run.
double flops_of(const OpSignature& signature);
// Bytes that one run has to read and write at least: every tensor once, of a table only the rows in use. What is
// changed in place counts twice.
double bytes_of(const OpSignature& signature);
// Throws Error for an id that the catalogue lacks.
const OpInfo& op_info(int32_t id);
// nullptr where there is none of this name (any case).
const OpInfo* find_op(std::string_view name);
std::vector<const OpInfo*> all_ops();

}  // namespace gpunn::graph
