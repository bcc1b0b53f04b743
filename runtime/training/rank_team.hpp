#pragma once

#include <gpunn/training.hpp>

#include <functional>
#include <memory>
#include <optional>

#include "distributed/team.hpp"
#include "training/session.hpp"

namespace gpunn::training {

// Runs `training` with the team of the other ranks; without a place, with none. Where it throws, the others hear why.
RunResult with_team(const std::optional<RankPlace>& place, TrainingListener* listener,
                    const std::function<RunResult(const std::shared_ptr<distributed::Team>&)>& training);

// Throws Error(usage) where the ranks of the session differ in experiment, version, plugins or data, or two have one
// device.
void require_equal_ranks(Session& session);

}  // namespace gpunn::training
