#pragma once

#include <gpunn/ranks.hpp>

#include <functional>
#include <optional>
#include <string>

namespace gpunn::distributed {

// The value of an environment variable; empty if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// find_rank() of that environment.
std::optional<RankPlace> rank_of(const Environment& environment);

// The first host of Slurm's list: "node07" of "node[07-09,12],login".
std::string first_host(const std::string& list);

}  // namespace gpunn::distributed
