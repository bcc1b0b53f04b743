#include "execution/steps/executable.hpp"

#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "compiler/value_use.hpp"
#include "execution/op_text.hpp"
#include "execution/steps/program_desc.hpp"
#include "execution/steps/step.hpp"
#include "execution/streams/stream_plan.hpp"
#include "execution/streams/streams.hpp"
#include "ops/op.hpp"

namespace gpunn::execution {

namespace {

// Limits of a captured graph that does several runs. There are enough runs in a launch to make its overhead negligible,
// and not so many nodes that making the graph takes longer than it saves.
constexpr int64_t kMostCapturedNodes = 2048;
constexpr int64_t kMostRuns = 32;
// A program of so few steps is launched in graphs of fewer runs, too.
constexpr int64_t kFewSteps = 4;

// The address of each value of a graph.
std::vector<void*> bind_values(Backend& backend, Variables& variables, const graph::Graph& graph,
                               const compiler::MemoryPlan& plan, void* arena) {
  const auto count = graph.values().size();
  if (plan.value_offset.size() != count || plan.workspace_offset.size() != graph.nodes().size()) {
    throw Error("the memory plan belongs to another graph");
  }
  const uint64_t alignment = backend.info().alignment;
  if (plan.arena_bytes > 0 && (arena == nullptr || reinterpret_cast<uintptr_t>(arena) % alignment != 0)) {
    throw Error("the arena is not aligned to the " + std::to_string(alignment) + " bytes that the backend asks for");
  }
  std::vector<void*> addresses(count, nullptr);
  for (std::size_t i = 0; i < count; ++i) {
    const auto id = static_cast<graph::ValueId>(i);
    const graph::Value& value = graph.value(id);
    const graph::Value& root = graph.value(graph.root(id));
    const int64_t offset = graph.root_offset(id);
    if (offset < 0 || static_cast<uint64_t>(offset) + value.type.bytes() > root.type.bytes()) {
      throw Error("value '" + value.name + "' " + to_string(value.type) + " at byte " + std::to_string(offset) +
                  " does not fit into '" + root.name + "' " + to_string(root.type));
    }
    if (root.storage != graph::Storage::arena) {
      auto* const base = static_cast<std::byte*>(variables.create(root.name, root.type, root.storage));
      addresses[i] = base + offset;
    } else if (const int64_t place = plan.value_offset[i]; place >= 0) {
      if (static_cast<uint64_t>(place) + value.type.bytes() > plan.arena_bytes) {
        throw Error("value '" + value.name + "' is planned beyond the end of the arena");
      }
      addresses[i] = static_cast<std::byte*>(arena) + place;
    }
  }
  return addresses;
}

[[noreturn]] void throw_subgraphs_of_another_graph() { throw Error("the subgraphs belong to another graph"); }

}  // namespace

std::vector<Placement> place_nodes(const Backend& backend, const graph::Graph& graph) {
  std::vector<Placement> placements;
  std::map<std::string, std::pair<std::string, std::size_t>> unserved;  // by op: its first problem, and how many more
  LongWork work("planning: choosing kernels", graph.nodes().size());
  for (const graph::Node& node : graph.nodes()) {
    work.advance();
    placements.push_back(backend.place(graph.signature(node)));
    if (placements.back().level >= 0) continue;
    auto [problem, first] = unserved.try_emplace(std::string(gpunn::ops::op_info(node.op).name));
    if (first) {
      problem->second.first = text_of(node) + ", " + text_of(graph.signature(node)) + ": " + placements.back().reason;
    } else {
      ++problem->second.second;
    }
  }
  if (unserved.empty()) return placements;
  std::string problems;
  for (const auto& [op, problem] : unserved) {
    problems += "\n  " + problem.first;
    if (problem.second > 0) problems += " (and " + std::to_string(problem.second) + " more of " + op + ")";
  }
  throw Error("backend '" + backend.name() + "' does not serve what the model needs:" + problems, ExitCode::missing);
}

struct Executable::Impl {
  enum class Mode { warm_up, try_capture, launch, eager };

  Backend& backend;
  graph::Graph graph;
  std::vector<void*> addresses;
  std::vector<Step> steps;
  bool fused = false;  // some steps are fused subgraphs
  Mode mode = Mode::warm_up;
  std::string not_capturable;  // known before the first run
  std::string eager_reason;
  std::unique_ptr<Backend::Captured> captured;  // one run
  // Of several runs: of runs_per_launch, behind those of 2, 4, ... for what is left.
  std::map<int64_t, std::unique_ptr<Backend::Captured>> captured_several;
  int64_t runs_per_launch = 1;
  std::vector<MemoryAccess> accesses;  // by step
  std::unique_ptr<Streams> streams;    // where steps may run at the same time
  std::size_t plain_streams = 0;       // of these, without that of steps between ranks

  Impl(Backend& on, Variables& variables, const graph::Graph& program, const compiler::MemoryPlan& plan, void* arena,
       const std::vector<Subgraph>& subgraphs, const std::vector<Placement>& placements)
      : backend(on), graph(program), addresses(bind_values(on, variables, program, plan, arena)) {
    bind_steps({addresses, plan, arena}, subgraphs, placements);
    not_capturable = why_not_capturable();
    if (not_capturable.empty()) prepare_streams();
  }

  void bind_steps(const BoundMemory& memory, const std::vector<Subgraph>& subgraphs,
                  const std::vector<Placement>& placements) {
    if (placements.size() != graph.nodes().size()) throw Error("the placements belong to another graph");
    steps.reserve(placements.size());
    if (!subgraphs.empty() && subgraphs.back().nodes.end() > placements.size()) throw_subgraphs_of_another_graph();
    std::optional<ProgramDescription> description;
    std::optional<SubgraphContext> program;
    if (!subgraphs.empty()) {
      description.emplace(graph, backend.options());
      program.emplace(SubgraphContext{*description, compiler::internal_values(graph, ranges_of(subgraphs))});
    }
    auto subgraph = subgraphs.begin();
    LongWork work("preparing kernels", placements.size());
    for (std::size_t node = 0; node < placements.size(); node = steps.back().nodes().end()) {
      work.reach(node);
      work.tell(text_of(graph.nodes()[node]));
      if (subgraph != subgraphs.end() && subgraph->nodes.first == node) {
        steps.emplace_back(backend, graph, *subgraph, *program, memory);
        fused = true;
        ++subgraph;
      } else {
        steps.emplace_back(backend, graph, node, placements[node], memory);
      }
    }
    if (subgraph != subgraphs.end()) throw_subgraphs_of_another_graph();
  }

  void prepare_streams() {
    const bool on_host = std::string(backend.info().memory_domain) == "host";
    const int bottom = static_cast<int>(backend.chain().size()) - 1;
    const bool between_ranks = std::ranges::any_of(steps, &Step::collective);
    if (on_host || !backend.concurrent(bottom) || (backend.options().streams <= 1 && !between_ranks)) return;
    for (const Step& step : steps) {
      using Where = MemoryAccess::Where;
      accesses.push_back(step.access(graph, addresses));
      accesses.back().where = step.collective()                  ? Where::between_ranks
                              : backend.concurrent(step.level()) ? Where::any
                                                                 : Where::first;
    }
    plain_streams = static_cast<std::size_t>(backend.options().streams);
    streams = std::make_unique<Streams>(backend, plain_streams + (between_ranks ? 1 : 0));
  }

  void require_op_by_op() const {
    if (fused) throw Error("a step program that was bound with fused subgraphs can't be run op by op");
  }

  std::string why_not_capturable() const {
    const std::vector<std::string> chain = backend.chain();
    if (!backend.can_capture()) return "backend '" + chain.back() + "' captures no graphs";
    for (const Step& step : steps) {
      const std::string& plugin = chain[static_cast<std::size_t>(step.level())];
      if ((step.flags() & GPUNN_OP_CAPTURABLE) == 0) {
        return step.what() + " can't be captured by '" + plugin + "'";
      }
      if (!backend.can_capture(step.level())) {
        return step.what() + " is run by '" + plugin + "', whose work on the host '" + chain.back() + "' can't capture";
      }
    }
    return "";
  }

  void enqueue_all() {
    for (Step& step : steps) step.enqueue();
  }

  // A kernel may prepare itself in its first run, which can take long.
  void enqueue_first() {
    LongWork work("running the first step", steps.size());
    for (Step& step : steps) {
      work.tell(step.what());
      step.enqueue();
      work.advance();
    }
  }

  // Every step, `times` over, each on its stream.
  void enqueue_on_streams(int64_t times) {
    std::vector<MemoryAccess> ops;
    for (int64_t i = 0; i < times; ++i) ops.insert(ops.end(), accesses.begin(), accesses.end());
    const std::vector<StreamStep> plan = plan_streams(ops, plain_streams);

    std::vector<bool> marked(plan.size(), false);
    for (const StreamStep& step : plan) {
      for (const std::size_t earlier : step.after) marked[earlier] = true;
    }
    std::vector<gpunn_event*> marks(plan.size(), nullptr);
    std::vector<bool> begun(streams->count(), false);
    begun[0] = true;
    gpunn_event* const beginning = streams->mark(0);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const StreamStep& step = plan[i];
      if (!begun[step.stream]) streams->wait(step.stream, beginning);
      begun[step.stream] = true;
      for (const std::size_t earlier : step.after) streams->wait(step.stream, marks[earlier]);
      steps[i % steps.size()].enqueue(*streams, step.stream);
      if (marked[i]) marks[i] = streams->mark(step.stream);
    }
    for (std::size_t stream = 1; stream < streams->count(); ++stream) {
      if (begun[stream]) streams->wait(0, streams->mark(stream));
    }
  }

  // Leaves capture mode also if an exception is thrown.
  std::unique_ptr<Backend::Captured> capture(int64_t times) {
    backend.begin_capture();
    try {
      if (streams != nullptr) {
        enqueue_on_streams(times);
      } else {
        for (int64_t i = 0; i < times; ++i) enqueue_all();
      }
    } catch (...) {
      try {
        backend.end_capture();
      } catch (const std::exception&) {  // the first error is the one to report
      }
      if (streams != nullptr) streams->forget_marks();
      throw;
    }
    auto result = backend.end_capture();
    if (streams != nullptr) streams->forget_marks();
    return result;
  }

  void fall_back(std::string reason) {
    eager_reason = std::move(reason);
    mode = Mode::eager;
  }

  void try_capture() {
    if (!not_capturable.empty()) return fall_back(not_capturable);
    try {
      captured = capture(1);
      mode = Mode::launch;
      runs_per_launch = std::clamp<int64_t>(kMostCapturedNodes / std::max<int64_t>(std::ssize(steps), 1), 1, kMostRuns);
    } catch (const std::exception& exception) {
      fall_back(std::string("capturing failed: ") + exception.what());
    }
  }

  // How many runs the next launch has. Short steps lose more by a launch each than it takes to capture a few graphs.
  int64_t runs_of_launch(int64_t times) const {
    if (times >= runs_per_launch) return runs_per_launch;
    return std::ssize(steps) <= kFewSteps ? static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(times))) : 1;
  }

  // Returns how many runs were launched.
  int64_t launch_several(int64_t runs) {
    std::unique_ptr<Backend::Captured>& several = captured_several[runs];
    if (several == nullptr) {
      try {
        several = capture(runs);
      } catch (const std::exception&) {  // one run a launch serves as well
        runs_per_launch = runs = 1;
      }
    }
    (runs > 1 ? several : captured)->launch();
    return runs;
  }

  void run(int64_t times) {
    while (times > 0) {
      if (mode == Mode::try_capture) try_capture();
      if (const int64_t runs = runs_of_launch(times); mode == Mode::launch && runs > 1) {
        times -= launch_several(runs);
        continue;
      }
      if (mode == Mode::launch) {
        captured->launch();
      } else if (mode == Mode::warm_up) {
        enqueue_first();
        mode = Mode::try_capture;
      } else {
        enqueue_all();
      }
      --times;
    }
  }
};

Executable::Executable(Backend& backend, Variables& variables, const graph::Graph& graph,
                       const compiler::MemoryPlan& plan, void* arena, const std::vector<Subgraph>& subgraphs)
    : impl_(std::make_unique<Impl>(backend, variables, graph, plan, arena, subgraphs, place_nodes(backend, graph))) {}

Executable::Executable(Backend& backend, Variables& variables, const CompiledProgram& program, void* arena)
    : impl_(std::make_unique<Impl>(backend, variables, program.graph, program.plan, arena, program.subgraphs.taken,
                                   program.placements)) {}

Executable::~Executable() {
  if (impl_ == nullptr) return;
  try {
    impl_->backend.synchronize();    // kernels are freed only when nothing uses them any more
  } catch (const std::exception&) {  // a lost device uses nothing
  }
}
Executable::Executable(Executable&&) noexcept = default;

void Executable::run(int64_t times) { impl_->run(times); }

int64_t Executable::runs_per_launch() const { return impl_->runs_per_launch; }

void Executable::run_node(std::size_t index) {
  impl_->require_op_by_op();
  impl_->steps.at(index).enqueue();
  impl_->backend.synchronize();
}

void Executable::run_observed(const std::function<void(const graph::Node&)>& after) {
  impl_->require_op_by_op();
  for (std::size_t i = 0; i < impl_->steps.size(); ++i) {
    run_node(i);
    after(impl_->graph.nodes()[i]);
  }
}

void Executable::run_marked(const std::function<void(std::size_t)>& after) {
  for (std::size_t i = 0; i < impl_->steps.size(); ++i) {
    impl_->steps[i].enqueue();
    after(i);
  }
}

void* Executable::address(graph::ValueId id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= impl_->addresses.size()) {
    throw Error("the program has no value " + std::to_string(id));
  }
  return impl_->addresses[static_cast<std::size_t>(id)];
}

bool Executable::captured() const { return impl_->captured != nullptr; }

std::string Executable::eager_reason() const { return impl_->eager_reason; }

}  // namespace gpunn::execution
