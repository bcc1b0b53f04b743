#include "conformance/oracle.hpp"

#include <map>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

std::map<int32_t, OracleFunction> build_table() {
  std::map<int32_t, OracleFunction> table;
  for (const auto& family : {arithmetic_oracle(),
                             elementwise_oracle(),
                             activation_oracle(),
                             matmul_oracle(),
                             bias_oracle(),
                             convolution_oracle(),
                             pooling_oracle(),
                             upsampling_oracle(),
                             shape_oracle(),
                             softmax_oracle(),
                             normalization_oracle(),
                             layer_norm_oracle(),
                             local_response_norm_oracle(),
                             loss_oracle(),
                             pointwise_loss_oracle(),
                             hinge_loss_oracle(),
                             reduction_oracle(),
                             optimizer_oracle(),
                             regularization_oracle(),
                             random_oracle(),
                             batch_oracle(),
                             augmentation_oracle(),
                             counter_oracle(),
                             metrics_oracle()}) {
    for (const OracleEntry& entry : family) table.emplace(entry.op, entry.run);
  }
  return table;
}

}  // namespace

std::vector<OracleTensor> run_oracle(const graph::OpSignature& signature, const std::vector<OracleTensor>& inputs) {
  static const std::map<int32_t, OracleFunction> table = build_table();
  const auto found = table.find(signature.op);
  if (found == table.end()) throw Error("the oracle has no op with id " + std::to_string(signature.op));

  OracleCall call(signature, inputs);
  call.require(inputs.size() == signature.inputs.size(),
               std::to_string(signature.inputs.size()) + " input tensors, found " + std::to_string(inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    call.require(inputs[i].type == signature.inputs[i], "input " + std::to_string(i) + " of type " +
                                                            to_string(signature.inputs[i]) + ", found " +
                                                            to_string(inputs[i].type));
    call.require(static_cast<int64_t>(inputs[i].values.size()) == inputs[i].type.elements(),
                 "as many values in input " + std::to_string(i) + " as " + to_string(inputs[i].type) + " has");
  }
  found->second(call);
  return call.take_outputs();
}

}  // namespace gpunn::conformance
