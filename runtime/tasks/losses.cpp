#include "tasks/losses.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

#include "graph/expressions.hpp"

namespace gpunn::tasks {

using graph::Attributes;
using graph::Graph;
using graph::ValueId;

namespace {

uint32_t all_but_rows(const graph::Expressions& e, ValueId x) { return e.all(x) & ~1U; }

template <std::size_t... kinds>
std::string name_at(std::size_t kind, std::index_sequence<kinds...>) {
  static constexpr std::array names = {std::variant_alternative_t<kinds, decltype(LossConfig::kind)>::kName...};
  return names.at(kind);
}

}  // namespace

ValueId add_loss_to_target(Graph& g, const LossConfig& loss, ValueId output, ValueId target) {
  switch (loss.type()) {
    case LossKind::cross_entropy:
      return g.add(GPUNN_OP_SOFT_CROSS_ENTROPY, "loss", {}, {output, target}).front();
    case LossKind::mean_squared_error:
      return g.add1(GPUNN_OP_MSE_LOSS, "loss", {}, {output, target});
    case LossKind::binary_cross_entropy:
      return g.add1(GPUNN_OP_BCE_LOGITS_LOSS, "loss", {}, {output, target});
    case LossKind::huber: {
      const gpunn_huber_attrs attrs{.struct_size = 0, .delta = static_cast<float>(std::get<Huber>(loss.kind).delta)};
      return g.add1(GPUNN_OP_HUBER_LOSS, "loss", Attributes::of(attrs), {output, target});
    }
    case LossKind::mean_absolute_error: {
      graph::Expressions e(g, "loss");
      const ValueId error = e.sub(output, target);
      return e.mean(e.maximum(error, e.sub(target, output)), all_but_rows(e, error), false);
    }
    case LossKind::charbonnier: {
      graph::Expressions e(g, "loss");
      const ValueId error = e.sub(output, target);
      const double epsilon = std::get<Charbonnier>(loss.kind).epsilon;
      const ValueId distance = e.sqrt(e.add(e.mul(error, error), e.constant(epsilon * epsilon)));
      return e.mean(distance, all_but_rows(e, error), false);
    }
    default:
      break;
  }
  throw Error("the loss " + name_of(loss.type()) + " does not compare outputs with a target of their shape",
              ExitCode::usage);
}

bool ends_in_part_of_loss(const Experiment& experiment) {
  const std::string& last = experiment.model.layers.back().type;
  if (experiment.loss.type() == LossKind::binary_cross_entropy) return last == "sigmoid";
  return experiment.loss.type() == LossKind::cross_entropy && (last == "softmax" || last == "log_softmax");
}

ValueId add_loss_input(Graph& g, const Experiment& experiment, const ModelOutputs& outputs) {
  if (!ends_in_part_of_loss(experiment)) return outputs.last;
  const std::vector<LayerSpec>& layers = experiment.model.layers;
  const LayerSpec& last = layers.back();
  std::string before;
  if (!last.from.empty()) {
    before = last.from.front();
  } else if (layers.size() > 1) {
    before = layers[layers.size() - 2].name;
  }
  const auto found = outputs.layers.find(before);
  if (found == outputs.layers.end()) {
    throw ConfigError(
        {{last.where, "the loss " + name_of(experiment.loss.type()) + " takes what goes into the last layer '" +
                          last.name + "', and that is the model's input: there is nothing to train"}});
  }
  const TensorType type = g.value(found->second).type;
  if (!is_half(type.dtype)) return found->second;
  const ValueId logits = g.add_value("logits", {DType::f32, type.shape}, graph::Storage::arena);
  g.add_into(GPUNN_OP_COPY, "logits", {}, {found->second}, {logits});
  return logits;
}

std::string name_of(LossKind kind) {
  return name_at(static_cast<std::size_t>(kind),
                 std::make_index_sequence<std::variant_size_v<decltype(LossConfig::kind)>>());
}

void require_class_weights(const LossConfig& loss, int64_t classes, const std::string& data) {
  const ClassWeights* const given = loss.class_weights();
  if (given == nullptr || given->class_weights.empty() || std::ssize(given->class_weights) == classes) return;
  throw ConfigError({{given->class_weights_place, "loss.class_weights: expected " + std::to_string(classes) +
                                                      " numbers, one for each class of '" + data + "', found " +
                                                      std::to_string(given->class_weights.size())}});
}

std::string data_text(const DataConfig& data) {
  return "'" + data.dataset + "'" + (data.path.empty() ? "" : " (" + data.path.string() + ")");
}

void require_outputs(const Graph& g, const Experiment& experiment, ValueId output, int64_t outputs,
                     std::string_view outputs_are) {
  const TensorType& type = g.value(output).type;
  if (type.shape.size() == 2 && type.shape[1] == outputs) return;
  const LayerSpec& last = experiment.model.layers.back();
  const std::string rows = std::to_string(type.shape.empty() ? 0 : type.shape[0]);
  throw ConfigError({{last.where, "the task " + experiment.task + " with the loss " + name_of(experiment.loss.type()) +
                                      " compares an output with each of the " + std::to_string(outputs) + " " +
                                      std::string(outputs_are) + " of " + data_text(experiment.data) +
                                      ": expected f32[" + rows + ", " + std::to_string(outputs) +
                                      "], the model's last layer '" + last.name + "' gives " + to_string(type)}});
}

}  // namespace gpunn::tasks
