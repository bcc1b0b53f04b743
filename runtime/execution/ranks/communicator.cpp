#include "execution/ranks/communicator.hpp"

#include <gpunn/error.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "plugins/call.hpp"

namespace gpunn::execution {

namespace {

gpunn_status exchange(void* context, const void* mine, uint64_t bytes, void* all) {
  auto& team = *static_cast<distributed::Team*>(context);
  try {
    const auto world = static_cast<std::size_t>(team.world());
    team.all_gather({static_cast<const std::byte*>(mine), bytes}, {static_cast<std::byte*>(all), bytes * world});
    return GPUNN_OK;
  } catch (const std::exception&) {  // told by the watch
    return GPUNN_INTERNAL;
  }
}

const gpunn_collective_extension* extension_of(const Level& level) {
  const void* found = nullptr;
  plugins::guarded_void([&] {
    if (level.table().extension != nullptr) found = level.table().extension(GPUNN_EXTENSION_COLLECTIVE);
  });
  const auto* const table = static_cast<const gpunn_collective_extension*>(found);
  if (table == nullptr) return nullptr;
  if (table->struct_size < sizeof(gpunn_collective_extension) || table->create == nullptr || table->query == nullptr ||
      table->enqueue == nullptr || table->abort == nullptr || table->destroy == nullptr) {
    throw Error("plugin '" + level.plugin->name() +
                "': the table of its extension " GPUNN_EXTENSION_COLLECTIVE " is not complete");
  }
  return table;
}

}  // namespace

gpunn_communicator_options group_of(distributed::Team& team) {
  return {.struct_size = sizeof(gpunn_communicator_options),
          .rank = team.rank(),
          .world = team.world(),
          .local_world = team.place().local_world,
          .exchange = exchange,
          .context = &team};
}

std::shared_ptr<RankCommunicator> RankCommunicator::create(const Level& level,
                                                           const std::shared_ptr<distributed::Team>& team) {
  const gpunn_collective_extension* const table = extension_of(level);
  if (team->any(table == nullptr)) return nullptr;
  std::shared_ptr<RankCommunicator> made(new RankCommunicator(level, *table, team));
  const gpunn_communicator_options options = group_of(*team);
  const plugins::CallResult result = plugins::guarded(
      [&](gpunn_error* error) { return table->create(level.device, &options, &made->handle_, error); });
  if (!result.ok()) made->handle_ = nullptr;
  if (team->any(made->handle_ == nullptr)) return nullptr;
  team->when_lost([weak = std::weak_ptr(made)] {
    if (const auto communicator = weak.lock()) communicator->table_.abort(communicator->handle_);
  });
  return made;
}

RankCommunicator::~RankCommunicator() {
  if (handle_ != nullptr) plugins::guarded_void([&] { table_.destroy(handle_); });
}

std::optional<uint32_t> RankCommunicator::serves(const gpunn_collective_desc& desc) const {
  gpunn_collective_support support{};
  support.struct_size = sizeof(support);
  const plugins::CallResult result =
      plugins::guarded([&](gpunn_error* error) { return table_.query(handle_, &desc, &support, error); });
  if (!result.ok() || support.score <= 0) return std::nullopt;
  const bool deterministic = (desc.flags & GPUNN_OP_REQUIRE_DETERMINISTIC) != 0;
  if (deterministic && (support.flags & GPUNN_OP_DETERMINISTIC) == 0) return std::nullopt;
  return support.flags;
}

void RankCommunicator::enqueue(gpunn_stream* stream, const gpunn_collective_desc& desc, const void* in, void* out) {
  const plugins::CallResult result =
      plugins::guarded([&](gpunn_error* error) { return table_.enqueue(handle_, stream, &desc, in, out, error); });
  if (result.ok()) return;
  team_->throw_if_lost();
  plugins::throw_failure(*level_.plugin, "a collective of " + std::to_string(desc.count) + " numbers", result);
}

}  // namespace gpunn::execution
