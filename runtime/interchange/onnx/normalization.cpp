#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

void batch_normalization(Call& call) {
  const Shape row = call.sample(0);
  if (call.integer("training_mode", 0) != 0) {
    throw Unsupported("is as in training; export the network in evaluation mode");
  }
  if (call.integer("spatial", 1) == 0 || row.empty()) throw Unsupported("its statistics are not by channel");
  const Value y = call.layer(
      "batch_norm", {&call.data(0)},
      {{"epsilon", {text(call.number("epsilon", 1e-5))}}, {"momentum", {text(1 - call.number("momentum", 0.9))}}}, row);
  const char* const names[] = {"weight", "bias", "running_mean", "running_var"};
  for (std::size_t i = 0; i < 4; ++i) call.set_tensor(y, names[i], {row[0]}, call.floats(i + 1, names[i]));
  call.give(y);
}

void local_response(Call& call) {
  const int64_t size = call.integer("size", 0);
  if (size < 1 || size % 2 == 0) throw Unsupported("its size must be odd, is " + std::to_string(size));
  call.give_layer("local_response_norm",
                  {{"size", {std::to_string(size)}},
                   {"alpha", {text(call.number("alpha", 1e-4))}},
                   {"beta", {text(call.number("beta", 0.75))}},
                   {"k", {text(call.number("bias", 1))}}},
                  call.sample(0));
}

}  // namespace

std::vector<OpRow> normalization_rows() {
  return {{"BatchNormalization", 7, batch_normalization}, {"LRN", 1, local_response}};
}

}  // namespace gpunn::interchange
