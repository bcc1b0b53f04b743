#pragma once

#include <gpunn/training.hpp>

#include <functional>
#include <memory>
#include <optional>

#include "distributed/team.hpp"
#include "session/session.hpp"

namespace gpunn::training {

// Runs `training` with the team of the other ranks; without a place, with none. If it throws, the others receive the
// reason.
RunResult with_team(const std::optional<RankPlace>& place, TrainingListener* listener,
                    const std::function<RunResult(const std::shared_ptr<distributed::Team>&)>& training);

// Throws Error(usage) if the ranks of the session differ in experiment, version, plugins or data, or if two share a
// device.
void require_equal_ranks(Session& session);

}  // namespace gpunn::training
