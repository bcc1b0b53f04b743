#include <gpunn/error.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "conformance/gradients/function.hpp"
#include "ops/op.hpp"

namespace gpunn::conformance {

namespace {

using graph::ValueId;

// Asks a node for the gradients of some inputs, and keeps what it answers.
class Asked : public ops::GradientContext {
 public:
  Asked(graph::Graph& graph, const graph::Node& node, std::set<std::size_t> inputs)
      : GradientContext(graph, node),
        dy_(graph.add_value("dy", graph.value(node.outputs.front()).type, graph::Storage::data)),
        inputs_(std::move(inputs)) {}

  ValueId output_gradient(std::size_t) const override { return dy_; }
  bool wants(std::size_t i) const override { return inputs_.contains(i); }
  void set(std::size_t i, ValueId gradient) override { gradients_[i] = gradient; }
  const std::map<std::size_t, ValueId>& gradients() const { return gradients_; }

  Wire wire(ValueId id) const {
    const auto place = [id](const std::vector<ValueId>& in) {
      return static_cast<std::size_t>(std::ranges::find(in, id) - in.begin());
    };
    if (id == dy_) return {Source::output_gradient, 0};
    if (std::ranges::count(node().inputs, id) != 0) return {Source::input, place(node().inputs)};
    if (std::ranges::count(node().outputs, id) != 0) return {Source::output, place(node().outputs)};
    throw Error(name() + " reads what is neither an input nor an output of its op");
  }

 private:
  ValueId dy_;
  std::set<std::size_t> inputs_;
  std::map<std::size_t, ValueId> gradients_;
};

struct Answer {
  std::vector<graph::Node> nodes;
  std::vector<Wire> wires;                // of the first node
  std::vector<std::size_t> with_respect;  // the inputs that have a gradient, in the order of its outputs
};

Answer ask(const ops::OpInfo& info, const ops::CaseSpec& spec, const std::set<std::size_t>& inputs) {
  graph::Graph graph;
  std::vector<ValueId> ids;
  for (const InputSpec& input : spec.inputs) ids.push_back(graph.add_value("x", input.type, graph::Storage::data));
  graph.add(info.id, std::string(info.name), spec.attrs, ids);
  const graph::Node node = graph.nodes().front();  // a copy: the graph grows
  Asked asked(graph, node, inputs);
  info.gradient(asked);
  Answer answer{{graph.nodes().begin() + 1, graph.nodes().end()}, {}, {}};
  if (answer.nodes.size() != 1) return answer;
  for (const ValueId id : answer.nodes[0].inputs) answer.wires.push_back(asked.wire(id));
  for (const ValueId id : answer.nodes[0].outputs) {
    for (const auto& [input, gradient] : asked.gradients()) {
      if (gradient == id) answer.with_respect.push_back(input);
    }
  }
  return answer;
}

// Whether anything flows back to this input. Losses refuse the question for their target.
bool flows_to(const ops::OpInfo& info, const ops::CaseSpec& spec, std::size_t input) {
  if (spec.inputs[input].type.dtype != DType::f32) return false;
  try {
    const Answer answer = ask(info, spec, {input});
    return answer.nodes.size() == 1 && std::ranges::count(answer.with_respect, input) != 0;
  } catch (const Error&) {
    return false;
  }
}

std::optional<GradientCase> gradient_case(const ops::OpInfo& info, const ops::CaseSpec& spec) {
  std::set<std::size_t> inputs;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    if (flows_to(info, spec, i)) inputs.insert(i);
  }
  const Answer answer = ask(info, spec, inputs);
  if (answer.nodes.size() != 1) return std::nullopt;
  return GradientCase{.name = "of " + std::string(info.name) + ", " + ops::make_case(info.id, spec).name,
                      .inputs = spec.inputs,
                      .forward = reference_function(info.id, spec.attrs),
                      .op = answer.nodes[0].op,
                      .attrs = answer.nodes[0].attrs,
                      .wires = answer.wires,
                      .with_respect = answer.with_respect};
}

}  // namespace

std::vector<GradientCase> family_gradients() {
  std::vector<GradientCase> cases;
  for (const ops::OpInfo* info : ops::all_ops()) {
    if (info->differentiable == nullptr) continue;
    for (const ops::CaseSpec& spec : info->differentiable()) {
      if (std::optional<GradientCase> made = gradient_case(*info, spec)) cases.push_back(std::move(*made));
    }
  }
  return cases;
}

}  // namespace gpunn::conformance
