// Whether a kernel remembers what it must not: each op called again and again, with others beside it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/bound_op.hpp"
#include "conformance/case_runner.hpp"
#include "conformance/state/footprint.hpp"
#include "conformance/state/watched_calls.hpp"
#include "conformance/suites.hpp"
#include "ops/op.hpp"

namespace gpunn::conformance {

using ops::Case;
using ops::Random;

namespace {

// An op with data and what should come of it.
class Exercise {
 public:
  Exercise(const Case& test, Workbench& bench, const std::string& data) {
    Random random(bench.options().seed, "state" + data + test.name);
    inputs_ = test.inputs(random);
    expectation_ = expect_reference(test.signature, inputs_, bench.options().precision);
  }

  // What comes of it; throws Error where that is wrong. `when` says after what.
  OutputBytes run(BoundOp& op, CheckCase& result, const std::string& when) const {
    op.write(inputs_);
    op.enqueue();
    return checked(op, result, when);
  }
  void prepare(BoundOp& op) const { op.write(inputs_); }
  OutputBytes checked(BoundOp& op, CheckCase& result, const std::string& when) const {
    OutputBytes outputs = op.read();
    if (const std::string fault = expectation_.fault(outputs, result.error); !fault.empty())
      throw Error(when + ": " + fault);
    return outputs;
  }

 private:
  std::vector<ReferenceTensor> inputs_;
  Expectation expectation_;
};

bool is_deterministic(const BoundOp& op) { return (op.placement().flags & GPUNN_OP_DETERMINISTIC) != 0; }

constexpr const char* kNotEqual =
    ": other bits than before on equal inputs, but the kernel says that it is deterministic";

// Other inputs, then the first again.
void call_again(const Case& test, Workbench& bench, CheckCase& result) {
  const Exercise first(test, bench, "first"), second(test, bench, "second");
  BoundOp op(bench.backend(), test.signature);
  const OutputBytes before = first.run(op, result, "its first call");
  second.run(op, result, "called again with other inputs");
  const OutputBytes after = first.run(op, result, "called with the first inputs again");
  if (is_deterministic(op) && before != after) throw Error(std::string("called a third time") + kNotEqual);
}

// Twenty runs on memory that lies elsewhere each time, by kernels of their own.
void run_elsewhere(const Case& test, Workbench& bench, CheckCase& result) {
  constexpr int kRuns = 20;
  const Exercise exercise(test, bench, "elsewhere");
  std::vector<std::unique_ptr<BoundOp>> ops;
  std::vector<execution::Buffer> between;
  OutputBytes first;
  for (int i = 0; i < kRuns; ++i) {
    between.push_back(
        bench.backend().allocate(bench.backend().info().alignment * static_cast<uint64_t>(1 + i * 7 % 5)));
    ops.push_back(std::make_unique<BoundOp>(bench.backend(), test.signature));
    OutputBytes outputs = exercise.run(*ops.back(), result, "at other addresses, run " + std::to_string(i + 1));
    if (i == 0) {
      first = std::move(outputs);
    } else if (is_deterministic(*ops.back()) && outputs != first) {
      throw Error("at other addresses, run " + std::to_string(i + 1) + kNotEqual);
    }
  }
  // All are alive: the first and the last must not share what they compute with.
  const Exercise other(test, bench, "another");
  exercise.prepare(*ops.front());
  other.prepare(*ops.back());
  ops.front()->enqueue();
  ops.back()->enqueue();
  exercise.checked(*ops.front(), result, "beside " + std::to_string(kRuns - 1) + " more kernels of the same shape");
  other.checked(*ops.back(), result, "beside " + std::to_string(kRuns - 1) + " more kernels of the same shape");
}

// A kernel of another shape is made, runs and goes between two calls of this one.
void interrupt(const Case& test, const Case& other, Workbench& bench, CheckCase& result) {
  if (bench.backend().place(other.signature).level < 0) return;
  const Exercise exercise(test, bench, "interrupted"), interruption(other, bench, "interrupting");
  BoundOp op(bench.backend(), test.signature);
  const std::string when = "with a kernel of another shape, " + other.name + ", ";
  {
    BoundOp between(bench.backend(), other.signature);
    exercise.run(op, result, when + "created behind it");
    interruption.run(between, result, "that kernel itself, " + other.name);
    exercise.run(op, result, when + "run before it");
    interruption.run(between, result, "that kernel itself, a second time, " + other.name);
  }
  exercise.run(op, result, when + "freed");
}

using Clock = std::chrono::steady_clock;

// How often something can be done in a while that is not long, given how long once takes.
int64_t times_within(double seconds, double once, int64_t most) {
  return std::clamp(static_cast<int64_t>(seconds / std::max(once, 1e-9)), int64_t{32}, most);
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A thousand calls: nothing allocated, nothing left behind.
void call_often(const Case& test, Workbench& bench, CheckCase& result) {
  const Exercise exercise(test, bench, "often");
  BoundOp op(bench.backend(), test.signature);
  exercise.run(op, result, "its first call");
  WatchedCalls calls(bench.plugin(op.placement().level));
  exercise.prepare(op);
  calls.arm();
  op.enqueue();
  calls.disarm();
  const std::string found = calls.found();
  exercise.checked(op, result, "called a second time");
  if (!found.empty()) {
    throw Error("op_enqueue, which must neither allocate nor wait, called " + found +
                "; what a kernel needs it gets in op_create, or asks for as workspace");
  }
  const auto begin = Clock::now();
  for (int i = 0; i < 32; ++i) op.enqueue();
  bench.backend().synchronize();
  const int64_t times = times_within(0.05, seconds_since(begin) / 32, 1000);
  const std::string grown = leak(bench.backend(), times, [&] { op.enqueue(); });
  if (!grown.empty()) throw Error(std::to_string(times) + " calls of one kernel leak " + grown);
  exercise.run(op, result, "after " + std::to_string(times) + " calls");
}

// Made and freed, again and again, with a call in between.
void create_often(const Case& test, Workbench& bench, CheckCase& result) {
  const Exercise exercise(test, bench, "create");
  execution::Backend& backend = bench.backend();
  const auto begin = Clock::now();
  constexpr int kWarmUp = 8;
  for (int i = 0; i < kWarmUp; ++i) {
    BoundOp op(backend, test.signature);
    exercise.run(op, result, "a kernel made anew");
  }
  const int64_t times = times_within(0.1, seconds_since(begin) / kWarmUp, 200);
  const execution::Placement placement = backend.place(test.signature);
  const std::string grown = leak(backend, times, [&] {
    backend.place(test.signature);
    backend.create(test.signature, placement);
  });
  if (!grown.empty()) throw Error(std::to_string(times) + " kernels, made and freed, leak " + grown);
}

int64_t output_elements(const Case& test) {
  int64_t sum = 0;
  for (const TensorType& type : test.signature.outputs) sum += type.elements();
  return sum;
}

// A case of the same op at other shapes, as large as may be; nothing where it has one shape.
std::map<int32_t, Case> other_cases(const std::vector<Case>& chosen, const ops::Ops& ops) {
  std::map<int32_t, const Case*> of;
  for (const Case& test : chosen) of.emplace(test.signature.op, &test);
  std::map<int32_t, Case> result;
  for (Case& test : ops::all_cases(ops)) {
    const auto found = of.find(test.signature.op);
    if (found == of.end() || test.signature.inputs == found->second->signature.inputs) continue;
    if (output_elements(test) == 0 || ops::elements_of(test) > ops::kOrdinaryElements) continue;
    const auto [before, first] = result.try_emplace(test.signature.op, test);
    if (!first && output_elements(test) > output_elements(before->second)) before->second = std::move(test);
  }
  return result;
}

}  // namespace

Checks state_suite(const CheckOptions& options) {
  Checks checks;
  const ops::Ops ops = ops_of(options);
  const std::vector<Case> cases = ops::one_case_each(ops);
  const std::map<int32_t, Case> others = other_cases(cases, ops);
  using Run = std::function<void(const Case& test, Workbench& bench, CheckCase& result)>;
  const auto add = [&checks](const Case& test, const std::string& what, Run run) {
    checks.push_back(make_check("state", test.signature, what + ": " + test.name));
    checks.back().run = [test, run = std::move(run)](Workbench& bench, CheckCase& result, const Note&) {
      if (is_served(bench.backend(), test.signature, result)) run(test, bench, result);
    };
  };
  for (const Case& test : cases) {
    add(test, "called again", call_again);
    add(test, "at other addresses", run_elsewhere);
    add(test, "called often", call_often);
    add(test, "made often", create_often);
    const auto other = others.find(test.signature.op);
    if (other == others.end()) continue;
    add(test, "beside another shape", [other = other->second](const Case& one, Workbench& bench, CheckCase& result) {
      interrupt(one, other, bench, result);
    });
  }
  return checks;
}

}  // namespace gpunn::conformance
