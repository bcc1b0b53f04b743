// Fused subgraphs: which ops the plugins are offered, and how a subgraph is bound to its plugin.
#include "execution/steps/subgraph.hpp"

#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>
#include <gpunn/subgraph.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "common/text.hpp"
#include "execution/backend_impl.hpp"
#include "execution/measurement/kernel_times.hpp"
#include "execution/op_text.hpp"
#include "execution/ranks/collective.hpp"
#include "execution/steps/program_desc.hpp"
#include "execution/streams/streams.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

namespace {

constexpr uint64_t kAbsurdSubgraphWorkspace = uint64_t{1} << 40;

// Offers the ops of a step program to the plugins, and brings those together that a plugin fuses.
class Offer {
 public:
  Offer(graph::Graph& graph, std::vector<Placement>& placements, const BackendOptions& options,
        const KernelTimes* times)
      : graph_(graph), placements_(placements), options_(options), times_(times) {
    description_.emplace(graph_, options_);
  }

  // Asks about the ops [first, end).
  void walk(std::span<const Level> levels, std::size_t first, std::size_t end, std::vector<Subgraph>& taken,
            LongWork& work) {
    while (first < end) {
      work.reach(first);
      std::optional<Subgraph> subgraph;
      for (std::size_t i = 0; i < levels.size() && !subgraph; ++i) {
        if (levels[i].subgraphs != nullptr) subgraph = ask(levels[i], static_cast<int>(i), first, end);
      }
      if (!subgraph) {
        ++first;
        continue;
      }
      // What has gone before it has not been asked about.
      walk(levels, first, subgraph->nodes.first, taken, work);
      first = subgraph->nodes.end();
      taken.push_back(std::move(*subgraph));
    }
  }

  std::vector<std::string> take_reasons() { return std::move(reasons_); }

 private:
  // A subgraph to which this node belongs, its nodes brought together.
  std::optional<Subgraph> ask(const Level& level, int index, std::size_t first, std::size_t end) {
    const std::size_t limit = limit_at(level, first, end);
    if (limit == 0) return std::nullopt;
    std::vector<uint32_t> ops(limit);
    std::iota(ops.begin(), ops.end(), static_cast<uint32_t>(first));
    gpunn_subgraph_support answer{};
    answer.struct_size = sizeof(answer);
    answer.ops = ops.data();
    const plugins::CallResult result = plugins::guarded([&](gpunn_error* error) {
      return level.subgraphs->query(level.device, description_->get(), static_cast<uint32_t>(first),
                                    static_cast<uint32_t>(limit), &answer, error);
    });
    if (!result.ok() && result.status != GPUNN_UNSUPPORTED) {
      plugins::throw_failure(*level.plugin, "query of a subgraph at " + text_of(graph_.nodes()[first]), result);
    }
    answer.name[sizeof(answer.name) - 1] = '\0';
    answer.reason[sizeof(answer.reason) - 1] = '\0';
    if (!result.ok() || answer.n_ops == 0) {
      note(level, first, result.ok() ? answer.reason : result.message);
      return std::nullopt;
    }
    require_sane(level, first, limit, answer, ops);
    ops.resize(answer.n_ops);
    const auto between_ranks = [&](uint32_t op) { return is_collective(graph_.nodes()[op].op); };
    if (level.ranks == nullptr && std::ranges::any_of(ops, between_ranks)) {
      note(level, first, "it fuses an exchange between ranks that it has not joined");
      return std::nullopt;
    }
    if (options_.deterministic && (answer.flags & GPUNN_OP_DETERMINISTIC) == 0) {
      note(level, first, "its fused subgraph is not deterministic, as `deterministic: true` requires");
      return std::nullopt;
    }
    if (const double lost = seconds_lost(index, ops); answer.saved_seconds > 0 && lost > answer.saved_seconds) {
      note(level, first,
           fmt::format("'{}' saves about {:.1f} us, the kernels of alternatives {:.1f} us", std::string(answer.name),
                       answer.saved_seconds * 1e6, lost * 1e6));
      return std::nullopt;
    }
    const plugin::Gathered gathered = plugin::gather_ops(plugin::ProgramDesc(*description_->get()), ops);
    if (gathered.between != plugin::Gathered::kNowhere) {
      note(level, first, text_of(graph_.nodes()[gathered.between]) + " has to run between what it fuses");
      return std::nullopt;
    }
    bring_together(first, ops, gathered);
    return Subgraph{.nodes = {first + gathered.before.size(), ops.size()},
                    .level = index,
                    .workspace_bytes = answer.workspace_bytes,
                    .flags = answer.flags,
                    .name = answer.name[0] == '\0' ? "fused ops" : answer.name};
  }

  // How much longer the plugin's kernels take for these ops than those of the alternatives that would run them, as far
  // as they are measured.
  double seconds_lost(int level, const std::vector<uint32_t>& ops) const {
    double lost = 0;
    for (const uint32_t op : ops) {
      const Placement& placement = placements_[op];
      if (times_ == nullptr || placement.level == level || placement.seconds == 0) continue;
      const std::string key = KernelTimes::key_of(graph_.signature(graph_.nodes()[op]), options_);
      lost += std::max(times_->find(key, level).value_or(placement.seconds) - placement.seconds, 0.0);
    }
    return lost;
  }

  void bring_together(std::size_t first, const std::vector<uint32_t>& ops, const plugin::Gathered& gathered) {
    if (gathered.before.empty() && gathered.behind.empty()) return;
    std::vector<std::size_t> order = gathered.before;
    order.insert(order.end(), ops.begin(), ops.end());
    order.insert(order.end(), gathered.behind.begin(), gathered.behind.end());
    std::vector<graph::Node> nodes;
    std::vector<Placement> placements;
    for (const std::size_t node : order) {
      nodes.push_back(std::move(graph_.nodes()[node]));
      placements.push_back(std::move(placements_[node]));
    }
    std::ranges::move(nodes, graph_.nodes().begin() + static_cast<std::ptrdiff_t>(first));
    std::ranges::move(placements, placements_.begin() + static_cast<std::ptrdiff_t>(first));
    description_.emplace(graph_, options_);
  }

  // How many ops come before the first that a higher plugin runs, or that runs with a kernel wanted by its name.
  std::size_t limit_at(const Level& level, std::size_t first, std::size_t end) const {
    const auto rest = std::span(placements_).subspan(first, end - first);
    const auto hidden = std::ranges::find_if(
        rest, [&](const Placement& p) { return p.level < 0 || p.rank < level.rank || !p.kernel.empty(); });
    return static_cast<std::size_t>(hidden - rest.begin());
  }

  void require_sane(const Level& level, std::size_t first, std::size_t limit, const gpunn_subgraph_support& answer,
                    const std::vector<uint32_t>& ops) const {
    const std::string where =
        "plugin '" + level.plugin->name() + "': query of a subgraph at " + text_of(graph_.nodes()[first]);
    if (answer.n_ops > limit) {
      throw Error(where + " fuses " + std::to_string(answer.n_ops) + " ops where " + std::to_string(limit) +
                  " were offered");
    }
    const auto end = ops.begin() + static_cast<std::ptrdiff_t>(answer.n_ops);
    const bool rising = std::adjacent_find(ops.begin(), end, std::greater_equal<>()) == end;
    if (answer.ops != ops.data() || !rising || ops[0] != first || *(end - 1) >= first + limit) {
      throw Error(where + " names ops that were not offered, not in their order, or not the first one");
    }
    if (answer.workspace_bytes > kAbsurdSubgraphWorkspace) {
      throw Error(where + " asks for a workspace of " + human_bytes(answer.workspace_bytes) + ", which makes no sense");
    }
  }

  void note(const Level& level, std::size_t first, const std::string& reason) {
    if (reason.empty()) return;
    std::string text = level.plugin->name() + ", at " + text_of(graph_.nodes()[first]) + ": " + reason;
    if (std::ranges::find(reasons_, text) == reasons_.end()) reasons_.push_back(std::move(text));
  }

  graph::Graph& graph_;
  std::vector<Placement>& placements_;
  const BackendOptions& options_;
  const KernelTimes* times_;  // nullptr: there are no alternatives
  std::optional<ProgramDescription> description_;
  std::vector<std::string> reasons_;
};

}  // namespace

std::string text_of(const graph::Graph& graph, const compiler::NodeRange& nodes) {
  std::string first = text_of(graph.nodes().at(nodes.first));
  if (nodes.count == 1) return first;
  return std::to_string(nodes.count) + " ops from " + first + " to " + text_of(graph.nodes().at(nodes.end() - 1));
}

std::vector<compiler::NodeRange> ranges_of(const std::vector<Subgraph>& subgraphs) {
  std::vector<compiler::NodeRange> ranges;
  ranges.reserve(subgraphs.size());
  for (const Subgraph& subgraph : subgraphs) ranges.push_back(subgraph.nodes);
  return ranges;
}

std::vector<std::string> Backend::fusing_plugins() const {
  std::vector<std::string> names;
  for (const Level& level : impl_->levels) {
    if (level.subgraphs != nullptr) names.push_back(level.plugin->name());
  }
  return names;
}

Subgraphs Backend::fuse_subgraphs(graph::Graph& graph, std::vector<Placement>& placements) const {
  Subgraphs result;
  if (fusing_plugins().empty()) return result;
  Offer offer(graph, placements, impl_->options, impl_->kernel_times.get());
  LongWork work("planning: fused subgraphs", graph.nodes().size());
  offer.walk(impl_->levels, 0, graph.nodes().size(), result.taken, work);
  result.reasons = offer.take_reasons();
  return result;
}

void Backend::require_workspaces(const graph::Graph& graph, const std::vector<Subgraph>& subgraphs) const {
  if (subgraphs.empty()) return;
  const ProgramDescription description(graph, impl_->options);
  for (const Subgraph& subgraph : subgraphs) {
    const std::string what = text_of(graph, subgraph.nodes);
    if (subgraph.level < 0 || static_cast<std::size_t>(subgraph.level) >= impl_->levels.size() ||
        impl_->levels[static_cast<std::size_t>(subgraph.level)].subgraphs == nullptr) {
      throw Error("no plugin of '" + name() + "' fuses " + what);
    }
    const Level& level = impl_->levels[static_cast<std::size_t>(subgraph.level)];
    std::vector<uint32_t> ops(subgraph.nodes.count);
    gpunn_subgraph_support answer{};
    answer.struct_size = sizeof(answer);
    answer.ops = ops.data();
    const plugins::CallResult result = plugins::guarded([&](gpunn_error* error) {
      return level.subgraphs->query(level.device, description.get(), static_cast<uint32_t>(subgraph.nodes.first),
                                    static_cast<uint32_t>(subgraph.nodes.count), &answer, error);
    });
    if (!result.ok() || answer.workspace_bytes <= subgraph.workspace_bytes) continue;
    throw Error(what + " take a workspace of " + human_bytes(answer.workspace_bytes) + ", and were planned with " +
                human_bytes(subgraph.workspace_bytes));
  }
}

struct FusedSubgraph::State {
  const Level* level = nullptr;
  std::size_t level_index = 0;
  gpunn_subgraph* handle = nullptr;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (handle != nullptr) plugins::guarded_void([&] { level->subgraphs->destroy(handle); });
  }
};

FusedSubgraph::FusedSubgraph() = default;
FusedSubgraph::FusedSubgraph(FusedSubgraph&& other) noexcept = default;
FusedSubgraph& FusedSubgraph::operator=(FusedSubgraph&& other) noexcept = default;
FusedSubgraph::~FusedSubgraph() = default;

void FusedSubgraph::enqueue(const gpunn_subgraph_args& args, const std::string& what) {
  enqueue_on(state_->level->stream, args, what);
}

void FusedSubgraph::enqueue(const gpunn_subgraph_args& args, const std::string& what, const Streams& streams,
                            std::size_t stream) {
  enqueue_on(streams.handle(stream, state_->level_index), args, what);
}

void FusedSubgraph::enqueue_on(gpunn_stream* stream, const gpunn_subgraph_args& args, const std::string& what) {
  const State& state = *state_;
  plugins::call(
      *state.level->plugin, [&] { return "enqueue of " + what; },
      [&](gpunn_error* error) { return state.level->subgraphs->enqueue(state.handle, stream, &args, error); });
}

FusedSubgraph Backend::create(const graph::Graph& graph, const Subgraph& subgraph,
                              const ProgramDescription& description) {
  const Level& level = impl_->levels.at(static_cast<std::size_t>(subgraph.level));
  if (level.subgraphs == nullptr) throw Error("plugin '" + level.plugin->name() + "' fuses no subgraphs");
  FusedSubgraph fused;
  fused.state_ = std::make_unique<FusedSubgraph::State>();
  fused.state_->level = &level;
  fused.state_->level_index = static_cast<std::size_t>(subgraph.level);
  gpunn_subgraph*& handle = fused.state_->handle;
  const auto what = [&] { return "create of " + text_of(graph, subgraph.nodes); };
  plugins::call(*level.plugin, what, [&](gpunn_error* error) {
    return level.subgraphs->create(level.device, description.get(), static_cast<uint32_t>(subgraph.nodes.first),
                                   static_cast<uint32_t>(subgraph.nodes.count), &handle, error);
  });
  if (handle == nullptr) {
    throw Error("plugin '" + level.plugin->name() + "': " + what() + " said OK but gave no subgraph");
  }
  return fused;
}

SubgraphArguments::SubgraphArguments(const graph::Graph& graph, const compiler::NodeRange& nodes,
                                     const std::vector<void*>& addresses, void* workspace, uint64_t workspace_bytes)
    : pointers_(graph.values().size(), nullptr) {
  const auto give = [&](graph::ValueId id) {
    const auto v = static_cast<std::size_t>(id);
    if (addresses[v] == nullptr || pointers_[v] != nullptr) return;
    pointers_[v] = &tensors_.emplace_back(abi_tensor(graph.value(id).type, addresses[v]));
  };
  for (std::size_t n = nodes.first; n < nodes.end(); ++n) {
    std::ranges::for_each(graph.nodes()[n].inputs, give);
    std::ranges::for_each(graph.nodes()[n].outputs, give);
  }
  args_.struct_size = sizeof(args_);
  args_.n_values = static_cast<uint32_t>(pointers_.size());
  args_.values = pointers_.data();
  args_.workspace = workspace;
  args_.workspace_bytes = workspace_bytes;
}

}  // namespace gpunn::execution
