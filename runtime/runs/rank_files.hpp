#pragma once

#include <filesystem>

#include "distributed/team.hpp"
#include "storage/checkpoint.hpp"

namespace gpunn::training {

// A checkpoint that rank 0 reads, on every rank: the others need not see its file.
storage::Checkpoint load_on_all_ranks(distributed::Team& team, const std::filesystem::path& file);

}  // namespace gpunn::training
