// Who serves an op, and the kernel that does.

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include "common/text.hpp"
#include "execution/backend_impl.hpp"
#include "execution/op_text.hpp"
#include "execution/ranks/collective.hpp"
#include "execution/ranks/communicator.hpp"
#include "execution/ranks/subgraphs.hpp"
#include "execution/steps/tensor_table.hpp"
#include "execution/streams/caller_stream.hpp"
#include "execution/streams/streams.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

namespace {

constexpr uint64_t kAbsurdWorkspace = uint64_t{1} << 40;

// A signature in the form that crosses the ABI; the signature must outlive it.
class Description {
 public:
  Description(const graph::OpSignature& signature, const BackendOptions& options, const std::string& kernel,
              uint64_t constant_inputs = 0)
      : inputs_(signature.inputs), outputs_(signature.outputs) {
    desc_.struct_size = sizeof(desc_);
    desc_.op = signature.op;
    desc_.attrs = signature.attrs.data();
    desc_.n_inputs = inputs_.size();
    desc_.n_outputs = outputs_.size();
    desc_.inputs = inputs_.pointers();
    desc_.outputs = outputs_.pointers();
    desc_.precision = abi_precision(options.precision);
    desc_.flags = options.deterministic ? uint32_t{GPUNN_OP_REQUIRE_DETERMINISTIC} : 0U;
    desc_.kernel = kernel.empty() ? nullptr : kernel.c_str();
    desc_.constant_inputs = constant_inputs;
  }
  const gpunn_op_desc* get() const { return &desc_; }

 private:
  TensorTable inputs_, outputs_;
  gpunn_op_desc desc_{};
};

// Whether the plugin reads gpunn_op_desc.kernel; one that does not would serve with any kernel.
bool knows_kernels(const Level& level) { return level.table().abi_minor >= 1; }

// The plugin's answer, about the kernel of that name where there is one, or why it does not serve the op in `reason`.
gpunn_op_support query(const Level& level, const graph::OpSignature& signature, const BackendOptions& options,
                       const std::string& kernel, std::string& reason) {
  if (!kernel.empty() && !knows_kernels(level)) {
    throw Error("plugin '" + level.plugin->name() + "' can't be asked for kernel '" + kernel +
                "': it was built for minor version 0 of the contract, which has no names for kernels");
  }
  const Description description(signature, options, kernel);
  gpunn_op_support support{};
  support.struct_size = sizeof(support);
  const plugins::CallResult result = plugins::guarded(
      [&](gpunn_error* error) { return level.table().op_query(level.device, description.get(), &support, error); });
  if (!result.ok() && result.status != GPUNN_UNSUPPORTED) {
    plugins::throw_failure(*level.plugin, "op_query of " + text_of(signature), result);
  }
  support.reason[sizeof(support.reason) - 1] = '\0';
  support.kernels[knows_kernels(level) ? sizeof(support.kernels) - 1 : 0] = '\0';
  if (!result.ok()) {
    support.score = 0;
    reason = result.message;
  } else if (support.score <= 0) {
    reason = support.reason;
  } else if (options.deterministic && (support.flags & GPUNN_OP_DETERMINISTIC) == 0) {
    support.score = 0;
    reason = "its kernel is not deterministic, which was asked for";
  } else if (support.workspace_bytes > kAbsurdWorkspace) {
    throw Error("plugin '" + level.plugin->name() + "': op_query of " + text_of(signature) +
                " asks for a workspace of " + human_bytes(support.workspace_bytes) + ", which makes no sense");
  }
  if (support.score <= 0 && reason.empty()) reason = "it gave no reason";
  return support;
}

std::string time_text(double seconds) {
  return std::isinf(seconds) ? "does not run" : fmt::format("{:.1f} us", seconds * 1e6);
}

std::vector<std::string> names_of(const gpunn_op_support& support) {
  std::vector<std::string> names;
  std::istringstream text(support.kernels);
  for (std::string name; std::getline(text, name, ',');) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

Placement placed(const Level& level, int index, const gpunn_op_support& support, const std::string& kernel) {
  Placement placement{.level = index,
                      .workspace_bytes = support.workspace_bytes,
                      .flags = support.flags,
                      .reason = "",
                      .kernel = kernel,
                      .score = support.score,
                      .rank = level.rank};
  if (level.host_copies != nullptr) {
    placement.workspace_bytes = 0;  // lies with its copies
    placement.flags &= ~uint32_t{GPUNN_OP_CAPTURABLE};
  }
  return placement;
}

}  // namespace

struct Kernel::State {
  const Level* level = nullptr;
  std::size_t level_index = 0;
  gpunn_kernel* handle = nullptr;
  uint64_t workspace_bytes = 0;
  std::unique_ptr<RankCollective> between_ranks;  // in place of the plugin's kernel
  OpSizes sizes;                                  // for host copies
  std::vector<const gpunn_tensor*> pointers;      // of the last enqueue of loose tensors

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (handle != nullptr) plugins::guarded_void([&] { level->table().op_free(handle); });
  }
};

Kernel::Kernel() = default;
Kernel::Kernel(Kernel&& other) noexcept = default;
Kernel& Kernel::operator=(Kernel&& other) noexcept = default;
Kernel::~Kernel() = default;

bool Kernel::collective() const { return state_ != nullptr && state_->between_ranks != nullptr; }

void Kernel::enqueue(const gpunn_op_args& args, const std::string& what) {
  enqueue_on(state_->level->stream, args, what);
}

void Kernel::enqueue(const gpunn_op_args& args, const std::string& what, const Streams& streams, std::size_t stream) {
  enqueue_on(streams.handle(stream, state_->level_index), args, what);
}

void Kernel::enqueue(const gpunn_op_args& args, const std::string& what, const CallerStream& stream) {
  enqueue_on(stream.handle(state_->level_index), args, what);
}

void Kernel::enqueue_on(gpunn_stream* stream, const gpunn_op_args& args, const std::string& what) {
  State& state = *state_;
  if (state.between_ranks != nullptr) return state.between_ranks->run(*state.level, stream, args);
  if (state.level->host_copies != nullptr) return state.level->host_copies->run(state.handle, args, state.sizes, what);
  plugins::call(
      *state.level->plugin, [&] { return "op_enqueue of " + what; },
      [&](gpunn_error* error) { return state.level->table().op_enqueue(state.handle, stream, &args, error); });
}

void Kernel::enqueue(std::span<const gpunn_tensor> inputs, std::span<const gpunn_tensor> outputs, void* workspace,
                     const std::string& what) {
  State& state = *state_;
  if (workspace == nullptr && state.workspace_bytes > 0) {
    throw Error(what + " needs a workspace of " + human_bytes(state.workspace_bytes) + ", and was given none");
  }
  state.pointers.clear();
  for (const gpunn_tensor& tensor : inputs) state.pointers.push_back(&tensor);
  for (const gpunn_tensor& tensor : outputs) state.pointers.push_back(&tensor);
  gpunn_op_args args{};
  args.struct_size = sizeof(args);
  args.n_inputs = static_cast<uint32_t>(inputs.size());
  args.n_outputs = static_cast<uint32_t>(outputs.size());
  args.inputs = state.pointers.data();
  args.outputs = state.pointers.data() + inputs.size();
  args.workspace = workspace;
  args.workspace_bytes = state.workspace_bytes;
  enqueue(args, what);
}

void Backend::join(std::shared_ptr<distributed::Team> team) {
  impl_->team = std::move(team);
  // First, as they are told first of a lost rank: a communicator's abort may wait for work that waits within a
  // subgraph.
  for (Level& level : impl_->levels) {
    level.ranks = impl_->team == nullptr ? nullptr : RankSubgraphs::join(level, impl_->team);
  }
  impl_->communicator = impl_->team == nullptr ? nullptr : RankCommunicator::create(impl_->bottom(), impl_->team);
}

void Backend::plan_ranks(int world) {
  impl_->planned_ranks = world;
  for (Level& level : impl_->levels) level.ranks = world > 1 ? RankSubgraphs::plan(level, world) : nullptr;
}

bool Backend::Impl::between_ranks(const graph::OpSignature& signature) const {
  return (team != nullptr || planned_ranks > 1) && is_collective(signature.op);
}

Placement Backend::place(const graph::OpSignature& signature) const {
  // On the plugin that owns the memory, and above all others where they are compared.
  if (impl_->between_ranks(signature)) {
    return {.level = static_cast<int>(impl_->levels.size()) - 1,
            .flags = RankCollective(impl_->team, impl_->communicator, signature, impl_->options.deterministic).flags(),
            .reason = "",
            .score = 1,
            .rank = 0};
  }
  if (!impl_->options.kernels.empty()) {
    if (Placement wanted = impl_->place_wanted(signature, kernels(signature)); wanted.level >= 0) return wanted;
  }
  Placement placement;
  for (std::size_t i = 0; i < impl_->levels.size(); ++i) {
    const Level& level = impl_->levels[i];
    std::string reason;
    const gpunn_op_support support = query(level, signature, impl_->options, "", reason);
    if (support.score > 0) {
      Placement found = placed(level, static_cast<int>(i), support, "");
      found.reason = std::move(placement.reason);
      return impl_->kernel_times == nullptr ? found : impl_->fastest(signature, std::move(found));
    }
    placement.reason += (i == 0 ? "" : "; ") + level.plugin->name() + ": " + reason;
  }
  return placement;
}

std::vector<Placement> Backend::alternatives(const graph::OpSignature& signature) const {
  std::vector<Placement> result;
  for (std::size_t i = 0; i < impl_->levels.size(); ++i) {
    const Level& level = impl_->levels[i];
    if (!result.empty() && level.rank != result.front().rank) continue;
    std::string reason;
    const gpunn_op_support support = query(level, signature, impl_->options, "", reason);
    if (support.score > 0) result.push_back(placed(level, static_cast<int>(i), support, ""));
  }
  return result;
}

// `highest`, or the alternative that is known to be faster.
Placement Backend::Impl::fastest(const graph::OpSignature& signature, Placement highest) {
  const auto is_other = [&](const Level& level) {
    return level.rank == highest.rank && &level != &levels[static_cast<std::size_t>(highest.level)];
  };
  if (std::ranges::none_of(levels, is_other)) return highest;
  const std::string key = KernelTimes::key_of(signature, options);
  const std::optional<double> known = kernel_times->find(key, highest.level);
  if (!known) {
    kernel_times->ask(key, signature);
    return highest;
  }
  Placement result = highest;
  result.seconds = *known;
  std::string times;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::optional<double> seconds = kernel_times->find(key, static_cast<int>(i));
    if (!seconds || levels[i].rank != highest.rank) continue;
    times += (times.empty() ? "" : ", ") + levels[i].plugin->name() + " " + time_text(*seconds);
    if (*seconds >= result.seconds) continue;
    std::string reason;
    const gpunn_op_support support = query(levels[i], signature, options, "", reason);
    if (support.score <= 0) continue;
    result = placed(levels[i], static_cast<int>(i), support, "");
    result.seconds = *seconds;
  }
  if (result.level != highest.level) result.reason = "slower: " + times;
  return result;
}

std::vector<NamedKernel> Backend::kernels(const graph::OpSignature& signature) const {
  std::vector<NamedKernel> result;
  for (std::size_t i = 0; i < impl_->levels.size(); ++i) {
    if (!knows_kernels(impl_->levels[i])) continue;
    std::string reason;
    for (std::string& name : names_of(query(impl_->levels[i], signature, impl_->options, "", reason))) {
      result.push_back({static_cast<int>(i), std::move(name)});
    }
  }
  return result;
}

std::string Backend::kernel_name(const graph::OpSignature& signature, const Placement& placement) const {
  if (!placement.kernel.empty() || placement.level < 0) return placement.kernel;
  const Level& level = impl_->levels[static_cast<std::size_t>(placement.level)];
  if (!knows_kernels(level)) return {};
  std::string reason, chosen;
  for (const std::string& name : names_of(query(level, signature, impl_->options, "", reason))) {
    const gpunn_op_support support = query(level, signature, impl_->options, name, reason);
    if (support.score != placement.score || support.workspace_bytes != placement.workspace_bytes) continue;
    if (!chosen.empty()) return {};
    chosen = name;
  }
  return chosen;
}

// By the first wanted kernel that there is; level -1: none of them is.
Placement Backend::Impl::place_wanted(const graph::OpSignature& signature, const std::vector<NamedKernel>& there) {
  for (const NamedKernel& kernel : there) kernel_names.known.insert(kernel.name);
  for (const std::string& name : options.kernels) {
    const auto found = std::ranges::find(there, name, &NamedKernel::name);
    if (found == there.end()) continue;
    const Level& level = levels[static_cast<std::size_t>(found->level)];
    std::string reason;
    const gpunn_op_support support = query(level, signature, options, name, reason);
    if (support.score <= 0) {
      throw Error("plugin '" + level.plugin->name() + "' names kernel '" + name + "' for " + text_of(signature) +
                  ", but does not serve it: " + reason);
    }
    kernel_names.taken.insert(name);
    return placed(level, found->level, support, name);
  }
  return {};
}

void Backend::want_kernels(std::vector<std::string> names) {
  const bool nameless = !names.empty() && std::ranges::none_of(impl_->levels, knows_kernels);
  if (nameless && !impl_->options.kernels_where_named) {
    throw Error("kernel '" + names.front() + "' can't be had of '" + name() +
                    "': it was built for minor version 0 of the contract, which has no names for kernels",
                ExitCode::missing);
  }
  if (nameless) names.clear();
  impl_->options.kernels = std::move(names);
}

const Backend::KernelNames& Backend::kernel_names() const { return impl_->kernel_names; }

void require_wanted_kernels(std::span<const Backend* const> backends, const std::vector<std::string>& wanted,
                            bool where_named) {
  Backend::KernelNames names;
  std::string who;
  for (const Backend* backend : backends) {
    names.known.insert(backend->kernel_names().known.begin(), backend->kernel_names().known.end());
    names.taken.insert(backend->kernel_names().taken.begin(), backend->kernel_names().taken.end());
    who += (who.empty() ? "'" : " or '") + backend->name() + "'";
  }
  if (where_named && names.known.empty()) return;
  for (const std::string& name : wanted) {
    if (names.taken.contains(name)) continue;
    const std::vector<std::string> known(names.known.begin(), names.known.end());
    const bool elsewhere = names.known.contains(name);  // behind another one that is wanted
    throw Error("no op takes kernel '" + name + "' of " + who +
                    (elsewhere       ? "; another that is wanted is named before it"
                     : known.empty() ? "; its kernels for these ops have no names"
                                     : did_you_mean_or_list(name, known)),
                ExitCode::usage);
  }
}

Kernel Backend::create(const graph::OpSignature& signature, int level, const std::string& name,
                       uint64_t constant_inputs) {
  if (level < 0 || static_cast<std::size_t>(level) >= impl_->levels.size()) {
    throw Error("no plugin was chosen for " + text_of(signature));
  }
  const Level& chosen = impl_->levels[static_cast<std::size_t>(level)];
  if (impl_->between_ranks(signature)) {
    Kernel kernel;
    kernel.state_ = std::make_unique<Kernel::State>();
    kernel.state_->level = &chosen;
    kernel.state_->level_index = static_cast<std::size_t>(level);
    kernel.state_->between_ranks =
        std::make_unique<RankCollective>(impl_->team, impl_->communicator, signature, impl_->options.deterministic);
    return kernel;
  }
  std::string reason;
  const gpunn_op_support support = query(chosen, signature, impl_->options, name, reason);
  if (support.score <= 0) {
    throw Error("plugin '" + chosen.plugin->name() + "' does not serve " + text_of(signature) + ": " + reason);
  }
  // Copies of host memory are other memory than what is constant.
  const Description description(signature, impl_->options, name, chosen.host_copies == nullptr ? constant_inputs : 0);
  Kernel kernel;
  kernel.state_ = std::make_unique<Kernel::State>();
  kernel.state_->level = &chosen;
  kernel.state_->level_index = static_cast<std::size_t>(level);
  kernel.state_->workspace_bytes = support.workspace_bytes;
  gpunn_kernel*& handle = kernel.state_->handle;
  plugins::call(
      *chosen.plugin, [&] { return "op_create of " + text_of(signature); },
      [&](gpunn_error* error) { return chosen.table().op_create(chosen.device, description.get(), &handle, error); });
  if (handle == nullptr) {
    throw Error("plugin '" + chosen.plugin->name() + "': op_create of " + text_of(signature) +
                " said OK but gave no kernel");
  }
  if (chosen.host_copies != nullptr) {
    for (const TensorType& type : signature.inputs) kernel.state_->sizes.inputs.push_back(type.bytes());
    for (const TensorType& type : signature.outputs) kernel.state_->sizes.outputs.push_back(type.bytes());
    kernel.state_->sizes.workspace = std::exchange(kernel.state_->workspace_bytes, 0);
    chosen.host_copies->reserve(kernel.state_->sizes);
  }
  return kernel;
}

Kernel Backend::create(const graph::OpSignature& signature, const Placement& placement, uint64_t constant_inputs) {
  Kernel kernel = create(signature, placement.level, placement.kernel, constant_inputs);
  if (kernel.state_->workspace_bytes > placement.workspace_bytes) {
    throw Error(text_of(signature) + " takes a workspace of " + human_bytes(kernel.state_->workspace_bytes) +
                ", and was planned with " + human_bytes(placement.workspace_bytes));
  }
  return kernel;
}

}  // namespace gpunn::execution
