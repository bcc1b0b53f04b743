#include "graph/op_info.hpp"

#include <gpunn/op_shapes.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "graph/ops/families.hpp"

namespace gpunn::graph {

namespace {

OpInfo described(OpInfo info, const ops::Op& row) {
  info.row = &row;
  info.name = row.name;
  info.min_inputs = static_cast<int>(row.signature.least_inputs);
  info.max_inputs = static_cast<int>(row.signature.most_inputs);
  for (const ops::Pattern& output : row.signature.outputs) {
    info.in_place.push_back(output.in_place);
    info.may_alias.push_back(output.may_alias);
  }
  return info;
}

const std::map<int32_t, OpInfo>& catalogue() {
  static const std::map<int32_t, OpInfo> table = [] {
    std::map<int32_t, OpInfo> result;
    for (const auto& [id, row] : ops::all()) result[id] = described({.id = id}, row);
    for (const auto& family : {arithmetic_ops(),   elementwise_ops(),    activation_ops(), linear_ops(),
                               convolution_ops(),  pooling_ops(),        upsampling_ops(), shape_ops(),
                               softmax_ops(),      normalization_ops(),  layer_norm_ops(), local_response_norm_ops(),
                               loss_ops(),         pointwise_loss_ops(), hinge_loss_ops(), reduction_ops(),
                               optimizer_ops(),    regularization_ops(), random_ops(),     batch_ops(),
                               augmentation_ops(), counter_ops()}) {
      for (const OpInfo& info : family) result[info.id] = described(info, ops::all().at(info.id));
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
  std::vector<ops::Tensor> given;
  for (const TensorType& type : inputs) given.push_back({static_cast<int32_t>(type.dtype), type.shape});
  try {
    std::vector<TensorType> types;
    for (ops::Tensor& output : ops::outputs_of(*row, attrs.data(), given)) {
      types.push_back({static_cast<DType>(output.dtype), std::move(output.shape)});
    }
    return types;
  } catch (const ops::Misfit& misfit) {
    throw Error(misfit.what());
  }
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

std::vector<const OpInfo*> all_ops() {
  std::vector<const OpInfo*> result;
  for (const auto& [id, info] : catalogue()) result.push_back(&info);
  return result;
}

}  // namespace gpunn::graph
