#pragma once

#include <gpunn/rank_subgraph.h>

#include <memory>

#include "distributed/team.hpp"
#include "execution/backend_impl.hpp"

namespace gpunn::execution {

// The ranks whose collectives a plugin's fused subgraphs may include (GPUNN_EXTENSION_RANK_SUBGRAPH).
class RankSubgraphs {
 public:
  // nullptr if the plugin of any rank lacks the extension or can't serve these ranks. All ranks call it.
  static std::shared_ptr<RankSubgraphs> join(const Level& level, const std::shared_ptr<distributed::Team>& team);
  // For a step that is planned and not run.
  static std::shared_ptr<RankSubgraphs> plan(const Level& level, int world);
  RankSubgraphs(const RankSubgraphs&) = delete;
  RankSubgraphs& operator=(const RankSubgraphs&) = delete;
  ~RankSubgraphs();

 private:
  RankSubgraphs(const Level& level, const gpunn_rank_subgraph_extension& table,
                std::shared_ptr<distributed::Team> team);
  bool joins(const gpunn_communicator_options& options);

  const Level& level_;
  const gpunn_rank_subgraph_extension& table_;
  std::shared_ptr<distributed::Team> team_;  // nullptr: it is planned
  bool joined_ = false;
};

}  // namespace gpunn::execution
