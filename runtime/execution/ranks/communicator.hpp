#pragma once

#include <gpunn/collective.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "distributed/team.hpp"
#include "execution/backend_impl.hpp"

namespace gpunn::execution {

// The ranks of a team, as a plugin gets to know them. The team must outlive their use.
gpunn_communicator_options group_of(distributed::Team& team);

// A plugin's functions that move data between ranks (GPUNN_EXTENSION_COLLECTIVE).
class RankCommunicator {
 public:
  // nullptr if the plugin of any rank lacks the extension or can't serve these ranks. All ranks call it.
  static std::shared_ptr<RankCommunicator> create(const Level& level, const std::shared_ptr<distributed::Team>& team);
  RankCommunicator(const RankCommunicator&) = delete;
  RankCommunicator& operator=(const RankCommunicator&) = delete;
  ~RankCommunicator();

  // GPUNN_OP_...; empty: it is not served.
  std::optional<uint32_t> serves(const gpunn_collective_desc& desc) const;
  void enqueue(gpunn_stream* stream, const gpunn_collective_desc& desc, const void* in, void* out);

 private:
  RankCommunicator(const Level& level, const gpunn_collective_extension& table, std::shared_ptr<distributed::Team> team)
      : level_(level), table_(table), team_(std::move(team)) {}

  const Level& level_;
  const gpunn_collective_extension& table_;
  std::shared_ptr<distributed::Team> team_;
  gpunn_communicator* handle_ = nullptr;
};

}  // namespace gpunn::execution
