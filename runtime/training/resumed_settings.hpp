#pragma once

#include <gpunn/experiment.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "storage/checkpoint.hpp"

namespace gpunn::training {

// Throws Error(usage) if the run folder is one of another experiment than the checkpoint in it.
void require_own_checkpoint(const std::filesystem::path& run, const std::filesystem::path& checkpoint,
                            const std::string& name);

// Gives the schedule the length that it has had in the checkpoint's run.
void keep_schedule(Experiment& experiment, const storage::Checkpoint& checkpoint, const std::filesystem::path& file);

// A resumed run goes by the experiment in its checkpoint. Notices about edits of the folder's experiment.yaml and
// resolved.yaml, which are ignored; not about keys that the overrides set.
std::vector<std::string> edited_files_notices(const std::filesystem::path& run, const storage::Checkpoint& checkpoint,
                                              const std::vector<Override>& overrides);

}  // namespace gpunn::training
