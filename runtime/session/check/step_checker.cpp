#include "session/check/step_checker.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

#include "execution/op_text.hpp"
#include "ops/comparison.hpp"
#include "program/programs.hpp"
#include "program/variable_access.hpp"
#include "session/check/crash_note.hpp"
#include "session/check/parameter_comparison.hpp"
#include "session/check/surroundings.hpp"

namespace gpunn::training {

using execution::Executable;
using graph::Storage;
using graph::ValueId;

namespace {

// NaN, or -1.
constexpr uint8_t kPoison = 0xFF;

HostBytes read(execution::Backend& backend, const void* address, std::size_t bytes) {
  HostBytes result(bytes);
  backend.download(result.data(), address, bytes);
  return result;
}

std::string plugin_of(const execution::Backend& backend, const execution::CompiledProgram& program, std::size_t node) {
  return "'" + backend.chain()[static_cast<std::size_t>(program.placements[node].level)] + "'";
}

}  // namespace

StepChecker::StepChecker(const Trained& first, std::unique_ptr<execution::Backend> second)
    : first_(first), second_(std::move(second)), scratch_(first.backend) {
  variables_ = std::make_unique<execution::Variables>(*second_);
  program_ = execution::place_and_plan(first_.program.graph, *second_, execution::FuseSubgraphs::none);
  arena_ = second_->allocate(program_.plan.arena_bytes);
  executable_ = std::make_unique<Executable>(*second_, *variables_, program_.graph, program_.plan, arena_.data());
  for (const graph::Value& value : program_.graph.values()) {
    if (value.view_of != graph::kNoValue || value.storage != Storage::data) continue;
    if (variables_->contains(value.name)) variables_->write(value.name, first_.variables.read(value.name));
  }
  comparison_.trained = first_.backend.name();
  comparison_.checked = second_->name();
}

StepChecker::~StepChecker() = default;

void StepChecker::step(Executable& executable) {
  const State before = read_state();
  std::memcpy(&step_, before.at(variable::kStep).data(), sizeof(step_));
  ++step_;
  for (std::size_t node = 0; node < program_.graph.nodes().size(); ++node) compare(executable, node);
  compare_whole_step(before);
  ++comparison_.steps;
}

StepChecker::State StepChecker::read_state() const {
  State state;
  for (const graph::Value& value : program_.graph.values()) {
    const bool kept =
        value.storage == Storage::parameters || value.storage == Storage::optimizer || value.storage == Storage::state;
    if (kept && value.view_of == graph::kNoValue) state.emplace(value.name, first_.variables.read(value.name));
  }
  return state;
}

// Pixels: what stays on the device, and what no bound of rounding depends on.
bool StepChecker::is_resident(ValueId value) const {
  const graph::Graph& graph = program_.graph;
  return first_.resident && graph.value(value).type.dtype == DType::u8 &&
         graph.value(graph.root(value)).storage == Storage::data;
}

void StepChecker::give_inputs(std::size_t node, const std::vector<HostBytes>& values) {
  const graph::Node& op = program_.graph.nodes()[node];
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_resident(op.inputs[i])) continue;
    second_->upload(executable_->address(op.inputs[i]), values[i].data(), values[i].size());
  }
}

bool StepChecker::overlap(ValueId a, ValueId b) const {
  const auto begin = [&](ValueId id) { return static_cast<const std::byte*>(executable_->address(id)); };
  const auto end = [&](ValueId id) { return begin(id) + program_.graph.value(id).type.bytes(); };
  return begin(a) < end(b) && begin(b) < end(a);
}

// What the second leaves unwritten must not be right because it lies there from the step before. An output in an
// input's memory holds the input.
void StepChecker::poison_outputs(std::size_t node) {
  const graph::Graph& graph = program_.graph;
  const graph::Node& op = graph.nodes()[node];
  for (const ValueId output : op.outputs) {
    if (std::ranges::any_of(op.inputs, [&](ValueId input) { return overlap(input, output); })) continue;
    second_->fill(executable_->address(output), kPoison, graph.value(output).type.bytes());
  }
}

ComparedOp StepChecker::run_node(Executable& executable, std::size_t node) {
  const graph::Graph& graph = program_.graph;
  const graph::Node& op = graph.nodes()[node];
  ComparedOp result{graph.signature(op), {}, {}, {}};
  for (const ValueId input : op.inputs) {
    const std::size_t bytes = is_resident(input) ? 0 : graph.value(input).type.bytes();
    result.inputs.push_back(read(first_.backend, executable.address(input), bytes));
  }
  const auto run = [&](execution::Backend& backend, const execution::CompiledProgram& program, Executable& by) {
    const CrashNote note(plugin_of(backend, program, node) + ": " + execution::text_of(op) + ", " +
                         execution::text_of(result.signature) + ", at step " + std::to_string(step_));
    by.run_node(node);
    backend.synchronize();
  };
  run(first_.backend, first_.program, executable);
  give_inputs(node, result.inputs);
  poison_outputs(node);
  const Surroundings around(*second_, program_, *executable_, arena_.data(), node);
  run(*second_, program_, *executable_);
  require_left_alone(node, result, around);
  for (const ValueId output : op.outputs) {
    const std::size_t bytes = graph.value(output).type.bytes();
    result.first.push_back(read(first_.backend, executable.address(output), bytes));
    result.second.push_back(read(*second_, executable_->address(output), bytes));
  }
  return result;
}

// The op that writes where it must not is named, and not the one that reads it.
void StepChecker::require_left_alone(std::size_t node, const ComparedOp& run, const Surroundings& around) const {
  const graph::Graph& graph = program_.graph;
  const graph::Node& op = graph.nodes()[node];
  std::string damaged = around.damage();
  for (std::size_t i = 0; i < op.inputs.size() && damaged.empty(); ++i) {
    const ValueId input = op.inputs[i];
    if (is_resident(input) || std::ranges::any_of(op.outputs, [&](ValueId output) { return overlap(input, output); })) {
      continue;
    }
    if (read(*second_, executable_->address(input), run.inputs[i].size()) != run.inputs[i]) {
      damaged = "its input " + std::to_string(i) + ", '" + graph.value(input).name + "'";
    }
  }
  if (damaged.empty()) return;
  throw Error("backend '" + second_->name() + "' wrote where it must not, at step " + std::to_string(step_) + ": " +
              execution::text_of(op) + ", run by " + plugin_of(*second_, program_, node) + ", changed " + damaged +
              ". " + execution::text_of(run.signature));
}

void StepChecker::compare(Executable& executable, std::size_t node) {
  const ComparedOp op = run_node(executable, node);
  const graph::Node& at = program_.graph.nodes()[node];
  std::vector<void*> resident;
  for (const ValueId input : at.inputs) resident.push_back(executable.address(input));
  const Judging judging{
      .precision = first_.backend.options().precision,
      .evaluate =
          [&](const std::vector<ops::ReferenceTensor>& inputs) {
            return scratch_.run(node, op.signature, inputs, resident);
          },
      .fetch =
          [&](std::size_t input) { return read(first_.backend, resident[input], op.signature.inputs[input].bytes()); }};
  const OpDifference difference = compare_op(op, judging);
  if (difference.departs) depart(node, op.signature, difference);
  if (difference.error > comparison_.op_error) {
    comparison_.op_error = difference.error;
    comparison_.op = execution::text_of(at) + " at step " + std::to_string(step_);
  }
}

void StepChecker::depart(std::size_t node, const graph::OpSignature& signature, const OpDifference& d) {
  const graph::Node& op = program_.graph.nodes()[node];
  const graph::Value& output = program_.graph.value(op.outputs[d.output]);
  const std::string a = first_.backend.name();
  const std::string b = second_->name();
  const bool flat = output.view_of == graph::kNoValue && output.type == first_.layout.type();
  const std::string parameter = flat ? " (" + parameter_element(first_.layout, d.element) + ")" : "";
  std::string text = "backends '" + a + "' and '" + b + "' depart at step " + std::to_string(step_) + " in " +
                     execution::text_of(op) + ", output " + std::to_string(d.output) + " '" + output.name + "' " +
                     ops::index_text(output.type.shape, d.element) + parameter + ": on the same inputs " + a +
                     " gives " + ops::number_text(d.first) + " and " + b + " " + ops::number_text(d.second) +
                     "; they may differ by " + ops::number_text(d.allowed) + " (" + d.reason + "). ";
  if (d.reference) {
    text += "The float64 reference gives " + ops::number_text(*d.reference) + ": " +
            (d.first_wrong && d.second_wrong ? "both are wrong. " : (d.first_wrong ? a : b) + " is wrong. ");
  }
  text += std::to_string(d.wrong) + " of " + std::to_string(output.type.elements()) + " elements are off. " +
          execution::text_of(signature) + " is run by " + plugin_of(first_.backend, first_.program, node) + " for " +
          a + " and by " + plugin_of(*second_, program_, node) + " for " + b;
  throw Error(text);
}

void StepChecker::compare_whole_step(const State& before) {
  for (const auto& [name, values] : before) variables_->write(name, values);
  executable_->run();
  const std::vector<float> start = values_of<float>(before.at(variable::kParameters));
  const std::vector<float> first = values_of<float>(first_.variables.read(variable::kParameters));
  const std::vector<float> second = values_of<float>(variables_->read(variable::kParameters));
  const Precision precision = first_.backend.options().precision;
  const bool half = precision == Precision::bf16 || precision == Precision::f16;
  const ParameterDifference difference = compare_parameters(start, first, second, half);
  const std::string element = parameter_element(first_.layout, difference.element);
  if (difference.departs) {
    const std::string a = first_.backend.name();
    const std::string b = second_->name();
    throw Error("backends '" + a + "' and '" + b + "' depart at step " + std::to_string(step_) +
                ": each op agrees on the inputs that " + a + " had, but the whole step in one go does not: " + element +
                " becomes " + ops::number_text(first[difference.element]) + " on " + a + " and " +
                ops::number_text(second[difference.element]) + " on " + b + ", and all parameters are " +
                ops::number_text(difference.apart) + " apart after a step of length " +
                ops::number_text(difference.moved) + ". An op of '" + b +
                "' may not wait for the one before it, or a captured graph replay an old value");
  }
  if (difference.largest > comparison_.parameter_difference) {
    comparison_.parameter_difference = difference.largest;
    comparison_.parameter = element + " at step " + std::to_string(step_);
  }
}

}  // namespace gpunn::training
