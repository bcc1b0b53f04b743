#include "ops/op.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "graph/output_types.hpp"

namespace gpunn::ops {

#define GPUNN_FAMILY(name)    \
  namespace name {            \
  std::vector<OpInfo> rows(); \
  }
#include "op_families.inc"
#undef GPUNN_FAMILY

namespace {

OpInfo described(OpInfo info, const Op& row) {
  info.row = &row;
  info.name = row.name;
  info.min_inputs = static_cast<int>(row.signature.least_inputs);
  info.max_inputs = static_cast<int>(row.signature.most_inputs);
  for (const Pattern& output : row.signature.outputs) {
    info.in_place.push_back(output.in_place);
    info.may_alias.push_back(output.may_alias);
  }
  return info;
}

const std::map<int32_t, OpInfo>& catalogue() {
  static const std::map<int32_t, OpInfo> table = [] {
    std::map<int32_t, OpInfo> result;
    for (const auto& [id, row] : all()) result[id] = described({.id = id}, row);
    for (const auto rows : {
#define GPUNN_FAMILY(name) name::rows,
#include "op_families.inc"
#undef GPUNN_FAMILY
         }) {
      for (const OpInfo& info : rows()) result[info.id] = described(info, all().at(info.id));
    }
    return result;
  }();
  return table;
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

}  // namespace

const OpInfo& op_info(int32_t id) {
  const auto found = catalogue().find(id);
  if (found == catalogue().end()) throw Error("there is no op " + std::to_string(id) + " in the catalogue");
  return found->second;
}

std::vector<TensorType> OpInfo::infer(const Attributes& attrs, std::span<const TensorType> inputs) const {
  return graph::output_types(*row, attrs, inputs);
}

double flops_of(const OpSignature& signature) {
  const OpInfo& info = op_info(signature.op);
  if (info.flops != nullptr) return info.flops(signature);
  return signature.outputs.empty() ? 0 : static_cast<double>(signature.outputs[0].elements());
}

double bytes_of(const OpSignature& signature) {
  const OpInfo& info = op_info(signature.op);
  if (info.bytes != nullptr) return info.bytes(signature);
  double bytes = 0;
  for (const auto* types : {&signature.inputs, &signature.outputs}) {
    for (const TensorType& type : *types) bytes += static_cast<double>(type.bytes());
  }
  return bytes;
}

const OpInfo* find_op(std::string_view name) {
  for (const auto& [id, info] : catalogue()) {
    if (same_ignoring_case(info.name, name)) return &info;
  }
  return nullptr;
}

Ops all_ops() {
  Ops result;
  for (const auto& [id, info] : catalogue()) result.push_back(&info);
  return result;
}

}  // namespace gpunn::ops
