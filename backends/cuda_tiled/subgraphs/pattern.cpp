#include "pattern.hpp"

#include <gpunn/ops.h>

#include <algorithm>

#include "common/requirements.hpp"

namespace gpunn::cuda_tiled {

using plugin::ProgramDesc;

std::string op_text(const ProgramDesc& desc, std::size_t op) {
  const auto name = [](int32_t id) -> const char* {
    switch (id) {
#define GPUNN_OP(NAME, ID, ATTRS, SIGNATURE, SUMMARY) \
  case ID:                                            \
    return #NAME;
#include <gpunn/op_list.inc>
#undef GPUNN_OP
      default:
        return "an unknown op";
    }
  };
  return std::string(name(desc.op(op).op())) + " (op " + std::to_string(op) + ")";
}

Pattern::Pattern(const ProgramDesc& desc, std::size_t first, std::size_t limit)
    : desc_(desc), first_(first), taken_(std::min(limit, desc.ops() - first), false) {}

bool Pattern::same(int32_t a, int32_t b) const {
  if (a == b) return true;
  const gpunn_program_value& left = desc_.value(a);
  const gpunn_program_value& right = desc_.value(b);
  return left.root == right.root && left.offset == right.offset && left.tensor->dtype == right.tensor->dtype &&
         plugin::element_count(*left.tensor) == plugin::element_count(*right.tensor);
}

std::size_t Pattern::find(std::initializer_list<int32_t> ops, std::initializer_list<int32_t> values) const {
  for (std::size_t i = begin(); i < end(); ++i) {
    const auto inputs = desc_.inputs(i);
    if (taken(i) || std::find(ops.begin(), ops.end(), op(i)) == ops.end() || inputs.size() < values.size()) continue;
    const bool reads = std::equal(values.begin(), values.end(), inputs.begin(),
                                  [&](int32_t value, int32_t input) { return value < 0 || same(value, input); });
    if (reads) return i;
  }
  return kNone;
}

std::size_t Pattern::producer(int32_t value, std::size_t before) const {
  for (std::size_t i = std::min(before, end()); i-- > begin();) {
    for (const int32_t output : desc_.outputs(i)) {
      if (desc_.overlap(output, value)) return i;
    }
  }
  return kNone;
}

std::size_t Pattern::take(std::size_t op, const char* otherwise) {
  backends::require(op < end(), otherwise);
  taken_[op - first_] = true;
  return op;
}

std::vector<uint32_t> Pattern::chosen() const {
  std::vector<uint32_t> ops;
  for (std::size_t i = begin(); i < end(); ++i) {
    if (taken(i)) ops.push_back(static_cast<uint32_t>(i));
  }
  return ops;
}

std::size_t Pattern::outer_reader(int32_t value) const {
  for (std::size_t i = 0; i < desc_.ops(); ++i) {
    if (taken(i)) continue;
    const auto inputs = desc_.inputs(i);
    if (std::any_of(inputs.begin(), inputs.end(), [&](int32_t input) { return desc_.overlap(input, value); })) return i;
  }
  return kNone;
}

bool Pattern::needed(int32_t value) const {
  return desc_.value(value).last_read >= static_cast<int64_t>(desc_.ops()) || outer_reader(value) != kNone;
}

}  // namespace gpunn::cuda_tiled
