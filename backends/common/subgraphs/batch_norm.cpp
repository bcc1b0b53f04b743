#include "common/subgraphs/batch_norm.hpp"

#include <gpunn/ops.h>

#include <algorithm>
#include <utility>

#include "common/elementwise.hpp"

namespace gpunn::backends {
namespace {

using plugin::ProgramDesc;

class NormMatcher {
 public:
  NormMatcher(const ProgramDesc& desc, std::size_t first, std::size_t limit)
      : desc_(desc), first_(first), limit_(std::min(limit, desc.ops() - first)) {}

  // Throws Refusal.
  NormSubgraph run() const {
    if (is(0, GPUNN_OP_BATCH_NORM)) return forward(0);
    return backward_from(0);
  }

  // Throws Refusal.
  NormSubgraph behind_convolution() const {
    if (!is(0, GPUNN_OP_CONV2D) || !is(1, GPUNN_OP_BATCH_NORM)) return {};
    const int32_t convolved = outputs(0)[0];
    if (inputs(1)[0] != convolved || desc_.value(convolved).root != convolved) return {};
    NormSubgraph run = forward(1);
    return run.ops > 0 && desc_.needed_after(convolved, first_ + run.ops) ? run : NormSubgraph{};
  }

  // Throws Refusal.
  NormSubgraph behind_gradient() const {
    if (!is(0, GPUNN_OP_CONV2D_BACKWARD_DATA)) return {};
    const int32_t convolved = outputs(0)[0];
    NormSubgraph run = backward_from(1);
    if (run.ops == 0 || !within(convolved, run.ops)) return {};
    if (run.other == convolved) std::swap(run.dy, run.other);
    return run.dy == convolved && run.other != convolved && run.y != convolved ? run : NormSubgraph{};
  }

 private:
  bool is(std::size_t i, int32_t op) const { return i < limit_ && desc_.op(first_ + i).op() == op; }
  std::vector<int32_t> inputs(std::size_t i) const {
    const auto ids = desc_.inputs(first_ + i);
    return {ids.begin(), ids.end()};
  }
  std::vector<int32_t> outputs(std::size_t i) const {
    const auto ids = desc_.outputs(first_ + i);
    return {ids.begin(), ids.end()};
  }
  // Whether only the first `count` ops have to do with the value.
  bool within(int32_t id, std::size_t count) const {
    return desc_.value(id).root == id && !desc_.needed_after(id, first_ + count);
  }

  // Whether all of these are needed after the subgraph, and so have memory.
  bool all_needed(const std::vector<int32_t>& ids, std::size_t begin, std::size_t count) const {
    return std::all_of(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end(),
                       [&](int32_t id) { return desc_.needed_after(id, first_ + count); });
  }

  // With what is behind it.
  NormSubgraph forward(std::size_t norm) const {
    NormSubgraph run;
    run.inputs = inputs(norm);
    run.outputs = outputs(norm);
    const int32_t normalised = run.outputs[0];
    if (is(norm + 1, GPUNN_OP_RELU) && inputs(norm + 1)[0] == normalised && within(normalised, norm + 2)) {
      map_size(desc_.op(first_ + norm + 1));
      run.y = outputs(norm + 1)[0];
      run.ops = norm + 2;
      run.relu = true;
    } else if (is(norm + 1, GPUNN_OP_ADD) && is(norm + 2, GPUNN_OP_RELU) && adds(norm, normalised, run.other)) {
      run.y = outputs(norm + 2)[0];
      run.ops = norm + 3;
      run.relu = true;
    } else {
      run.y = normalised;
      run.ops = norm + 1;
    }
    if (!all_needed(run.outputs, 1, run.ops) || !all_needed({run.y}, 0, run.ops)) return {};
    run.shape = batch_norm_of(desc_.op(first_ + norm));
    run.dtype = desc_.op(first_ + norm).input(0).dtype;
    return run.ops > 1 ? run : NormSubgraph{};
  }

  // Whether the two ops behind batch norm are a sum with `other` and a ReLU that nothing else reads from.
  bool adds(std::size_t norm, int32_t normalised, int32_t& other) const {
    const std::vector<int32_t> terms = inputs(norm + 1);
    const int32_t sum = outputs(norm + 1)[0];
    if (terms[0] == terms[1] || (terms[0] != normalised && terms[1] != normalised)) return false;
    if (inputs(norm + 2)[0] != sum || !within(normalised, norm + 3) || !within(sum, norm + 3)) return false;
    map_size(desc_.op(first_ + norm + 1));
    map_size(desc_.op(first_ + norm + 2));
    other = terms[0] == normalised ? terms[1] : terms[0];
    return true;
  }

  NormSubgraph backward_from(std::size_t first) const {
    if (is(first, GPUNN_OP_RELU_BACKWARD)) return backward(first, false);
    if (is(first, GPUNN_OP_ADD) && is(first + 1, GPUNN_OP_RELU_BACKWARD)) return backward(first + 1, true);
    return {};
  }

  // `adds`: the op before the ReLU's gradient is the sum that it reads.
  NormSubgraph backward(std::size_t relu, bool adds) const {
    const std::size_t norm = relu + 1;
    if (!is(norm, GPUNN_OP_BATCH_NORM_BACKWARD)) return {};
    NormSubgraph run;
    run.backward = true;
    run.ops = norm + 1;
    run.dy = inputs(relu)[0];
    run.y = inputs(relu)[1];
    if (adds) {
      const int32_t sum = outputs(relu - 1)[0];
      if (run.dy != sum || run.y == sum || !within(sum, run.ops)) return {};
      map_size(desc_.op(first_ + relu - 1));
      run.dy = inputs(relu - 1)[0];
      run.other = inputs(relu - 1)[1];
    }
    const int32_t masked = outputs(relu)[0];
    run.inputs = inputs(norm);
    run.outputs = outputs(norm);
    if (run.inputs[0] != masked || run.inputs[1] == masked) return {};
    if (!all_needed(run.outputs, 0, run.ops)) return {};
    if (desc_.needed_after(masked, first_ + run.ops)) run.masked = masked;
    map_size(desc_.op(first_ + relu));
    run.shape = batch_norm_backward_of(desc_.op(first_ + norm));
    run.dtype = desc_.op(first_ + norm).input(0).dtype;
    return run;
  }

  const ProgramDesc& desc_;
  std::size_t first_;
  std::size_t limit_;
};

}  // namespace

NormSubgraph match_norm(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  try {
    return NormMatcher(desc, first, limit).run();
  } catch (const Refusal&) {
    return {};
  }
}

NormSubgraph match_convolution_norm(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  try {
    return NormMatcher(desc, first, limit).behind_convolution();
  } catch (const Refusal&) {
    return {};
  }
}

NormSubgraph match_gradient_norm(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
  try {
    return NormMatcher(desc, first, limit).behind_gradient();
  } catch (const Refusal&) {
    return {};
  }
}

}  // namespace gpunn::backends
