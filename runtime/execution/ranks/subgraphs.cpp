#include "execution/ranks/subgraphs.hpp"

#include <gpunn/error.hpp>

#include <utility>

#include "execution/ranks/communicator.hpp"
#include "plugins/call.hpp"

namespace gpunn::execution {

namespace {

const gpunn_rank_subgraph_extension* rank_extension_of(const Level& level) {
  if (level.subgraphs == nullptr) return nullptr;
  const void* found = nullptr;
  plugins::guarded_void([&] { found = level.table().extension(GPUNN_EXTENSION_RANK_SUBGRAPH); });
  const auto* const table = static_cast<const gpunn_rank_subgraph_extension*>(found);
  if (table == nullptr) return nullptr;
  if (table->struct_size < sizeof(gpunn_rank_subgraph_extension) || table->join == nullptr || table->abort == nullptr ||
      table->leave == nullptr) {
    throw Error("plugin '" + level.plugin->name() +
                "': the table of its extension " GPUNN_EXTENSION_RANK_SUBGRAPH " is not complete");
  }
  return table;
}

}  // namespace

RankSubgraphs::RankSubgraphs(const Level& level, const gpunn_rank_subgraph_extension& table,
                             std::shared_ptr<distributed::Team> team)
    : level_(level), table_(table), team_(std::move(team)) {}

bool RankSubgraphs::joins(const gpunn_communicator_options& options) {
  joined_ = plugins::guarded([&](gpunn_error* error) { return table_.join(level_.device, &options, error); }).ok();
  return joined_;
}

std::shared_ptr<RankSubgraphs> RankSubgraphs::join(const Level& level, const std::shared_ptr<distributed::Team>& team) {
  const gpunn_rank_subgraph_extension* const table = rank_extension_of(level);
  if (team->any(table == nullptr)) return nullptr;
  std::shared_ptr<RankSubgraphs> made(new RankSubgraphs(level, *table, team));
  if (team->any(!made->joins(group_of(*team)))) return nullptr;
  team->when_lost([weak = std::weak_ptr(made)] {
    if (const auto ranks = weak.lock()) ranks->table_.abort(ranks->level_.device);
  });
  return made;
}

std::shared_ptr<RankSubgraphs> RankSubgraphs::plan(const Level& level, int world) {
  const gpunn_rank_subgraph_extension* const table = rank_extension_of(level);
  if (table == nullptr) return nullptr;
  std::shared_ptr<RankSubgraphs> made(new RankSubgraphs(level, *table, nullptr));
  const gpunn_communicator_options options{.struct_size = sizeof(options),
                                           .rank = 0,
                                           .world = world,
                                           .local_world = world,
                                           .exchange = nullptr,
                                           .context = nullptr};
  return made->joins(options) ? made : nullptr;
}

RankSubgraphs::~RankSubgraphs() {
  if (joined_) plugins::guarded_void([&] { table_.leave(level_.device); });
}

}  // namespace gpunn::execution
