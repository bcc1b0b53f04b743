#include "execution/executable.hpp"

#include <gpunn/error.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "execution/lane_plan.hpp"
#include "execution/lanes.hpp"
#include "execution/op_text.hpp"
#include "execution/tensor_table.hpp"

namespace gpunn::execution {

namespace {

constexpr std::size_t kShownProblems = 8;

// Of a graph that does several runs: enough of them that what a launch costs no longer counts, and not so many nodes
// that making the graph takes longer than it saves.
constexpr int64_t kMostCapturedNodes = 2048;
constexpr int64_t kMostRuns = 32;

MemoryRange range_of(const gpunn_tensor& tensor, const TensorType& type) {
  const auto begin = reinterpret_cast<uintptr_t>(tensor.data);
  return {begin, begin + type.bytes()};
}

// Where each value of a graph is.
std::vector<void*> bind_values(Backend& backend, Variables& variables, const graph::Graph& graph,
                               const graph::MemoryPlan& plan, void* arena) {
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

}  // namespace

std::vector<Placement> place_nodes(const Backend& backend, const graph::Graph& graph) {
  std::vector<Placement> placements;
  std::string problems;
  std::size_t unserved = 0;
  for (const graph::Node& node : graph.nodes()) {
    placements.push_back(backend.place(graph.signature(node)));
    if (placements.back().level >= 0) continue;
    if (++unserved <= kShownProblems) {
      problems += "\n  " + text_of(node) + ", " + text_of(graph.signature(node)) + ": " + placements.back().reason;
    }
  }
  if (unserved == 0) return placements;
  if (unserved > kShownProblems) problems += "\n  and " + std::to_string(unserved - kShownProblems) + " more";
  throw Error("backend '" + backend.name() + "' does not serve what the model needs:" + problems, ExitCode::missing);
}

struct Executable::Impl {
  struct Step {
    Kernel kernel;
    OpArguments arguments;
    std::string what;
  };
  enum class Mode { warm_up, try_capture, launch, eager };

  Backend& backend;
  graph::Graph graph;
  std::vector<void*> addresses;
  std::vector<Step> steps;
  Mode mode = Mode::warm_up;
  std::string not_capturable;  // known before the first run
  std::string eager_reason;
  std::unique_ptr<Backend::Captured> captured;          // one run
  std::unique_ptr<Backend::Captured> captured_several;  // runs_per_launch
  int64_t runs_per_launch = 1;
  std::vector<MemoryAccess> accesses;  // by node
  std::unique_ptr<Lanes> lanes;        // where ops may run at the same time

  Impl(Backend& on, Variables& variables, const graph::Graph& program, const graph::MemoryPlan& plan, void* arena)
      : backend(on), graph(program), addresses(bind_values(on, variables, program, plan, arena)) {
    const std::vector<Placement> placements = place_nodes(backend, graph);
    steps.reserve(graph.nodes().size());
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) bind_node(i, placements[i], plan, arena);
    not_capturable = why_not_capturable(placements);
    if (not_capturable.empty()) prepare_lanes(placements);
  }

  void prepare_lanes(const std::vector<Placement>& placements) {
    const bool on_host = std::string(backend.info().memory_domain) == "host";
    const int bottom = static_cast<int>(backend.chain().size()) - 1;
    if (on_host || backend.options().streams <= 1 || !backend.concurrent(bottom)) return;
    for (std::size_t i = 0; i < steps.size(); ++i) accesses.push_back(access_of(i, placements[i]));
    lanes = std::make_unique<Lanes>(backend, static_cast<std::size_t>(backend.options().streams));
  }

  MemoryAccess access_of(std::size_t index, const Placement& placement) const {
    const graph::Node& node = graph.nodes()[index];
    const gpunn_op_args& args = steps[index].arguments.get();
    MemoryAccess access;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      access.reads.push_back(range_of(*args.inputs[i], graph.value(node.inputs[i]).type));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      access.writes.push_back(range_of(*args.outputs[i], graph.value(node.outputs[i]).type));
    }
    const auto workspace = reinterpret_cast<uintptr_t>(args.workspace);
    if (args.workspace_bytes > 0) access.writes.push_back({workspace, workspace + args.workspace_bytes});
    access.movable = backend.concurrent(placement.level);
    return access;
  }

  std::vector<gpunn_tensor> tensors(const std::vector<graph::ValueId>& ids, const std::string& what) const {
    std::vector<gpunn_tensor> result;
    for (const graph::ValueId id : ids) {
      void* const address = addresses[static_cast<std::size_t>(id)];
      if (address == nullptr) {
        throw Error(what + " uses value '" + graph.value(id).name + "', which has no place in the memory plan");
      }
      result.push_back(abi_tensor(graph.value(id).type, address));
    }
    return result;
  }

  void bind_node(std::size_t index, const Placement& placement, const graph::MemoryPlan& plan, void* arena) {
    const graph::Node& node = graph.nodes()[index];
    std::string what = text_of(node);
    void* workspace = nullptr;
    if (placement.workspace_bytes > 0) {
      const int64_t offset = plan.workspace_offset[index];
      if (offset < 0 || static_cast<uint64_t>(offset) + placement.workspace_bytes > plan.arena_bytes) {
        throw Error("the memory plan holds no workspace of " + std::to_string(placement.workspace_bytes) +
                    " bytes for " + what);
      }
      workspace = static_cast<std::byte*>(arena) + offset;
    }
    steps.push_back(
        {backend.create(graph.signature(node), placement.level),
         OpArguments(tensors(node.inputs, what), tensors(node.outputs, what), workspace, placement.workspace_bytes),
         std::move(what)});
  }

  std::string why_not_capturable(const std::vector<Placement>& placements) const {
    const std::vector<std::string> chain = backend.chain();
    if (!backend.can_capture()) return "backend '" + chain.back() + "' captures no graphs";
    const bool on_host = std::string(backend.info().memory_domain) == "host";
    for (std::size_t i = 0; i < placements.size(); ++i) {
      const std::string& plugin = chain[static_cast<std::size_t>(placements[i].level)];
      if ((placements[i].flags & GPUNN_OP_CAPTURABLE) == 0) {
        return steps[i].what + " can't be captured by '" + plugin + "'";
      }
      // A host stream has no native handle that would let one plugin record another's work.
      if (on_host && placements[i].level + 1 != static_cast<int>(chain.size())) {
        return steps[i].what + " is run by '" + plugin + "', whose work on the host '" + chain.back() +
               "' can't capture";
      }
    }
    return "";
  }

  void enqueue_all() {
    for (Step& step : steps) step.kernel.enqueue(step.arguments.get(), step.what);
  }

  // Every node, `times` over, each on its lane.
  void enqueue_on_lanes(int64_t times) {
    std::vector<MemoryAccess> ops;
    for (int64_t i = 0; i < times; ++i) ops.insert(ops.end(), accesses.begin(), accesses.end());
    const std::vector<LaneStep> plan = plan_lanes(ops, lanes->count());

    std::vector<bool> marked(plan.size(), false);
    for (const LaneStep& step : plan) {
      for (const std::size_t earlier : step.after) marked[earlier] = true;
    }
    std::vector<gpunn_event*> marks(plan.size(), nullptr);
    std::vector<bool> begun(lanes->count(), false);
    begun[0] = true;
    gpunn_event* const beginning = lanes->mark(0);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      const LaneStep& step = plan[i];
      if (!begun[step.lane]) lanes->wait(step.lane, beginning);
      begun[step.lane] = true;
      for (const std::size_t earlier : step.after) lanes->wait(step.lane, marks[earlier]);
      Step& node = steps[i % steps.size()];
      node.kernel.enqueue(node.arguments.get(), node.what, *lanes, step.lane);
      if (marked[i]) marks[i] = lanes->mark(step.lane);
    }
    for (std::size_t lane = 1; lane < lanes->count(); ++lane) {
      if (begun[lane]) lanes->wait(0, lanes->mark(lane));
    }
  }

  // Whatever goes wrong, the stream is out of capture mode afterwards.
  std::unique_ptr<Backend::Captured> capture(int64_t times) {
    backend.begin_capture();
    try {
      if (lanes != nullptr) {
        enqueue_on_lanes(times);
      } else {
        for (int64_t i = 0; i < times; ++i) enqueue_all();
      }
    } catch (...) {
      try {
        backend.end_capture();
      } catch (const std::exception&) {  // the first error is the one to tell
      }
      if (lanes != nullptr) lanes->forget_marks();
      throw;
    }
    auto result = backend.end_capture();
    if (lanes != nullptr) lanes->forget_marks();
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

  void launch_several() {
    if (captured_several == nullptr) {
      try {
        captured_several = capture(runs_per_launch);
      } catch (const std::exception&) {  // one run a launch serves as well
        runs_per_launch = 1;
        captured->launch();
        return;
      }
    }
    captured_several->launch();
  }

  void run(int64_t times) {
    while (times > 0) {
      if (mode == Mode::try_capture) try_capture();
      if (mode == Mode::launch && runs_per_launch > 1 && times >= runs_per_launch) {
        const int64_t done = runs_per_launch;
        launch_several();
        times -= runs_per_launch > 1 ? done : 1;
        continue;
      }
      if (mode == Mode::launch) {
        captured->launch();
      } else {
        enqueue_all();
        if (mode == Mode::warm_up) mode = Mode::try_capture;
      }
      --times;
    }
  }
};

Executable::Executable(Backend& backend, Variables& variables, const graph::Graph& graph, const graph::MemoryPlan& plan,
                       void* arena)
    : impl_(std::make_unique<Impl>(backend, variables, graph, plan, arena)) {}

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
  Impl::Step& step = impl_->steps.at(index);
  step.kernel.enqueue(step.arguments.get(), step.what);
  impl_->backend.synchronize();
}

void Executable::run_observed(const std::function<void(const graph::Node&)>& after) {
  for (std::size_t i = 0; i < impl_->steps.size(); ++i) {
    run_node(i);
    after(impl_->graph.nodes()[i]);
  }
}

void Executable::run_marked(const std::function<void(std::size_t)>& after) {
  for (std::size_t i = 0; i < impl_->steps.size(); ++i) {
    Impl::Step& step = impl_->steps[i];
    step.kernel.enqueue(step.arguments.get(), step.what);
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
