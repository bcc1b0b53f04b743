#include <cstddef>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange {

namespace {

void batch_normalization(Call& call) {
  const Shape row = call.sample(0);
  constexpr int64_t kSaysItself = 6;  // up to this opset a node says that it is no training
  if (call.integer("training_mode", 0) != 0 || (call.opset() <= kSaysItself && call.integer("is_test", 0) == 0)) {
    throw Unsupported("is as in training; export the network in evaluation mode");
  }
  call.require_first_output_alone("gives its statistics, which layers don't");
  if (call.integer("spatial", 1) == 0 || row.empty()) throw Unsupported("its statistics are not by channel");
  const Value y = call.layer(
      "batch_norm", {&call.data(0)},
      {{"epsilon", {text(call.number("epsilon", 1e-5))}}, {"momentum", {text(1 - call.number("momentum", 0.9))}}}, row);
  const char* const names[] = {"weight", "bias", "running_mean", "running_var"};
  for (std::size_t i = 0; i < 4; ++i) call.set_tensor(y, names[i], {row[0]}, call.floats(i + 1, names[i]));
  call.give(y);
}

// Of a weight and a bias of this shape, which may have none of the latter.
void set_scale(Call& call, const Value& y, const Shape& shape) {
  call.set_tensor(y, "weight", shape, call.floats(1, "the weights"));
  const std::vector<float> zeros(static_cast<std::size_t>(element_count(shape)), 0);
  call.set_tensor(y, "bias", shape, call.has(2) ? call.floats(2, "the biases") : floats_constant(shape, zeros));
}

void layer_normalization(Call& call) {
  const Shape row = call.sample(0);
  const std::size_t first = call.axis("axis", -1, row.size() + 1);
  call.require_first_output_alone("gives its statistics, which layers don't");
  if (first == 0) throw Unsupported("its statistics are over the batch");
  const Shape together(row.begin() + static_cast<std::ptrdiff_t>(first) - 1, row.end());
  const std::size_t dimensions = together.size() == row.size() ? 0 : together.size();
  const Value y = call.layer(
      "layer_norm", {&call.data(0)},
      {{"epsilon", {text(call.number("epsilon", 1e-5))}}, {"dimensions", {std::to_string(dimensions)}}}, row);
  set_scale(call, y, together);
  call.give(y);
}

void instance_normalization(Call& call) {
  const Shape row = call.sample(0);
  if (row.size() < 2) throw Unsupported("takes " + to_string(call.data(0).shape) + "; expected [N, C, ...]");
  const Value y = call.layer("instance_norm", {&call.data(0)},
                             {{"epsilon", {text(call.number("epsilon", 1e-5))}}, {"affine", {"true"}}}, row);
  set_scale(call, y, {row[0]});
  call.give(y);
}

// A number for each group, as up to opset 20, is that number for each of its channels.
Constant by_channel_of(const Constant& groups, int64_t channels) {
  const auto count = static_cast<int64_t>(groups.floats->size());
  if (count == 0 || channels % count != 0) throw Unsupported("its groups don't fit its channels");
  std::vector<float> values;
  for (int64_t i = 0; i < channels; ++i) {
    values.push_back((*groups.floats)[static_cast<std::size_t>(i / (channels / count))]);
  }
  return floats_constant({channels}, std::move(values));
}

void group_normalization(Call& call) {
  const Shape row = call.sample(0);
  const int64_t groups = call.integer("num_groups", 0);
  if (row.size() < 2 || groups < 1 || row[0] % groups != 0) throw Unsupported("its groups don't fit its channels");
  const Value y =
      call.layer("group_norm", {&call.data(0)},
                 {{"groups", {std::to_string(groups)}}, {"epsilon", {text(call.number("epsilon", 1e-5))}}}, row);
  call.set_tensor(y, "weight", {row[0]}, by_channel_of(call.floats(1, "the weights"), row[0]));
  call.set_tensor(y, "bias", {row[0]}, by_channel_of(call.floats(2, "the biases"), row[0]));
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
  return {{"BatchNormalization", 6, batch_normalization},
          {"LayerNormalization", 17, layer_normalization},
          {"InstanceNormalization", 6, instance_normalization},
          {"GroupNormalization", 18, group_normalization},
          {"LRN", 1, local_response}};
}

}  // namespace gpunn::interchange
