#include "conformance/case_runner.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "compiler/decompose.hpp"
#include "conformance/guarded_buffer.hpp"
#include "ops/op.hpp"

namespace gpunn::conformance {

using ops::compare;
using ops::Comparison;
using ops::decode;
using ops::encode;
using ops::Evaluation;
using ops::index_text;
using ops::ReferenceTensor;
using ops::run_reference;
using ops::tolerance_of;

namespace {

// For each output the input whose memory it has; -1: its own.
using Aliases = std::vector<int>;

std::vector<Aliases> variants_of(const graph::OpSignature& signature) {
  const ops::OpInfo& info = ops::op_info(signature.op);
  Aliases base(signature.outputs.size(), -1);
  for (std::size_t i = 0; i < base.size() && i < info.in_place.size(); ++i) base[i] = info.in_place[i];
  std::vector<Aliases> variants{base};
  for (std::size_t i = 0; i < base.size() && i < info.may_alias.size(); ++i) {
    for (const int input : info.may_alias[i]) {
      if (signature.inputs.at(static_cast<std::size_t>(input)) != signature.outputs[i]) continue;
      variants.push_back(base);
      variants.back()[i] = input;
    }
  }
  return variants;
}

// What the memory holds before a run: the first is NaN or -1, the second an ordinary number, so that an element that is
// left unwritten shows whatever its value should be.
constexpr uint8_t kPoisons[] = {0xFF, 0xC3};

// The tensors of one variant on the device.
class Bench {
 public:
  Bench(execution::Backend& backend, const graph::OpSignature& signature, const std::vector<ReferenceTensor>& inputs,
        const Aliases& aliases, const std::vector<int>& same_memory, uint64_t workspace_bytes)
      : backend_(backend), signature_(signature), aliases_(aliases), workspace_(backend, workspace_bytes, kOutputBand) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      content_.push_back(encode(inputs[i]));
      if (i < same_memory.size() && same_memory[i] >= 0) {
        inputs_.push_back(inputs_[static_cast<std::size_t>(same_memory[i])]);
        continue;
      }
      inputs_.push_back(std::make_shared<GuardedBuffer>(backend, content_.back().size(), kInputBand));
      inputs_.back()->write(content_.back());
    }
    for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
      // An output in place has no buffer of its own.
      outputs_.push_back(aliases[i] >= 0
                             ? nullptr
                             : std::make_unique<GuardedBuffer>(backend, signature.outputs[i].bytes(), kOutputBand));
    }
  }

  void run(execution::Kernel& kernel, uint8_t poison, const std::string& what) {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i]) outputs_[i]->fill(poison);
      if (aliases_[i] >= 0) inputs_[input_of(i)]->write(content_[input_of(i)]);
    }
    workspace_.fill(poison);
    std::vector<gpunn_tensor> in, out;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      in.push_back(execution::abi_tensor(signature_.inputs[i], inputs_[i]->data()));
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      out.push_back(execution::abi_tensor(signature_.outputs[i], output(i).data()));
    }
    kernel.enqueue(in, out, workspace_.data(), what);
    backend_.synchronize();
    for (const auto& buffer : inputs_) buffer->read();
    for (const auto& buffer : outputs_) {
      if (buffer) buffer->read();
    }
    workspace_.read();
  }

  std::span<const std::byte> result(std::size_t i) { return output(i).content(); }

  // Empty: no band was overwritten and no input changed.
  std::string damage() const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const std::string damage = outputs_[i] ? outputs_[i]->damage() : "";
      if (!damage.empty()) return "output " + std::to_string(i) + ": the kernel " + damage;
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::string damage = inputs_[i]->damage();
      if (!damage.empty()) return "input " + std::to_string(i) + ": the kernel " + damage;
      const bool written = std::ranges::any_of(
          aliases_, [&](int input) { return input >= 0 && inputs_[static_cast<std::size_t>(input)] == inputs_[i]; });
      if (!written && !std::ranges::equal(inputs_[i]->content(), content_[i])) {
        return "input " + std::to_string(i) + ": the kernel changed it";
      }
    }
    const std::string damage = workspace_.damage();
    if (damage.empty()) return "";
    return "the workspace of " + std::to_string(workspace_.bytes()) + " bytes: the kernel " + damage;
  }

 private:
  std::size_t input_of(std::size_t i) const { return static_cast<std::size_t>(aliases_[i]); }
  GuardedBuffer& output(std::size_t i) { return outputs_[i] ? *outputs_[i] : *inputs_[input_of(i)]; }

  execution::Backend& backend_;
  const graph::OpSignature& signature_;
  const Aliases& aliases_;
  std::vector<std::vector<std::byte>> content_;         // of the inputs
  std::vector<std::shared_ptr<GuardedBuffer>> inputs_;  // two may be one
  std::vector<std::unique_ptr<GuardedBuffer>> outputs_;
  GuardedBuffer workspace_;
};

std::string variant_text(const Aliases& aliases, const Aliases& base) {
  std::string text;
  for (std::size_t i = 0; i < aliases.size(); ++i) {
    if (aliases[i] == base[i]) continue;
    text += "output " + std::to_string(i) + " in the memory of input " + std::to_string(aliases[i]) + ": ";
  }
  return text;
}

// Where two runs differ; empty: nowhere.
std::string difference(const std::vector<std::byte>& first, std::span<const std::byte> second, const TensorType& type) {
  const auto [a, b] = std::ranges::mismatch(first, second);
  if (a == first.end()) return "";
  const auto element = static_cast<std::size_t>(a - first.begin()) / size_of(type.dtype);
  return index_text(type.shape, element) +
         " differs between two runs on equal inputs, but the kernel says that it is deterministic (an element that no "
         "kernel wrote differs too)";
}

// Runs one variant twice; the first thing that is wrong, or nothing.
std::string run_variant(execution::Backend& backend, execution::Kernel& kernel, const graph::OpSignature& signature,
                        Bench& bench, const Expectation& expectation, bool deterministic, double& error) {
  std::vector<std::vector<std::byte>> before;
  for (const uint8_t poison : kPoisons) {
    bench.run(kernel, poison, std::string(ops::op_info(signature.op).name) + " on '" + backend.name() + "'");
    if (std::string damage = bench.damage(); !damage.empty()) return damage;
    for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
      if (std::string fault = expectation.fault(i, bench.result(i), error); !fault.empty()) return fault;
      if (before.size() < signature.outputs.size()) {
        before.emplace_back(bench.result(i).begin(), bench.result(i).end());
      } else if (deterministic) {
        const std::string change = difference(before[i], bench.result(i), signature.outputs[i]);
        if (!change.empty()) return "output " + std::to_string(i) + change;
      }
    }
  }
  return "";
}

}  // namespace

std::string Expectation::fault(std::size_t i, std::span<const std::byte> found, double& error) const {
  const Comparison comparison =
      compare(outputs[i], decode(outputs[i].type, found), tolerances[i], "output " + std::to_string(i));
  error = std::max(error, comparison.error);
  return comparison.detail;
}

std::string Expectation::fault(const std::vector<std::vector<std::byte>>& found, double& error) const {
  std::string first;
  for (std::size_t i = 0; i < found.size() && first.empty(); ++i) first = fault(i, found[i], error);
  return first;
}

Expectation expect_reference(const graph::OpSignature& signature, const std::vector<ReferenceTensor>& inputs,
                             Precision precision) {
  Expectation expectation{run_reference(signature, inputs), {}};
  const Evaluation evaluation{signature, inputs, expectation.outputs, {}, precision};
  for (std::size_t i = 0; i < expectation.outputs.size(); ++i) {
    expectation.tolerances.push_back(tolerance_of(evaluation, i));
  }
  return expectation;
}

namespace {

// Whether a training composes the op, which no plugin serves, of others.
bool is_composed(const execution::Backend& backend, const graph::OpSignature& signature) {
  graph::Graph program;
  std::vector<graph::ValueId> inputs;
  for (const TensorType& type : signature.inputs) {
    inputs.push_back(program.add_value("input", type, graph::Storage::data));
  }
  program.add(signature.op, "composed", signature.attrs, inputs);
  compiler::decompose_unserved(program, [&](const graph::OpSignature& part) { return backend.place(part).level; });
  return program.nodes().front().op != signature.op;
}

}  // namespace

bool is_served(const execution::Backend& backend, const graph::OpSignature& signature, CheckCase& result) {
  const execution::Placement placement = backend.place(signature);
  if (placement.level >= 0) return true;
  result.verdict = Verdict::unsupported;
  result.detail = placement.reason;
  if (is_composed(backend, signature)) {
    result.optional = true;
    result.detail += "; trainings compose it of other ops";
  }
  return false;
}

void run_case(execution::Backend& backend, const graph::OpSignature& signature,
              const std::vector<ReferenceTensor>& inputs, const Expectation& expectation, CheckCase& result,
              const std::vector<int>& same_memory) {
  if (!is_served(backend, signature, result)) return;
  const execution::Placement placement = backend.place(signature);
  execution::Kernel kernel = backend.create(signature, placement);
  const bool deterministic = (placement.flags & GPUNN_OP_DETERMINISTIC) != 0;
  const std::vector<Aliases> variants = variants_of(signature);
  for (const Aliases& aliases : variants) {
    Bench bench(backend, signature, inputs, aliases, same_memory, placement.workspace_bytes);
    const std::string problem =
        run_variant(backend, kernel, signature, bench, expectation, deterministic, result.error);
    if (problem.empty()) continue;
    result.verdict = Verdict::failed;
    result.detail = variant_text(aliases, variants.front()) + problem;
    return;
  }
}

}  // namespace gpunn::conformance
