#pragma once

#include <gpunn/training.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

#include "session/session.hpp"

// A device computes while the host does something else. The host notices a failure at its next wait. Then it can't say
// which of the ops since the last wait failed, and this process can't use the device any more. But a step is a function
// of the state and the step number. So a new process repeats the steps since the last checkpoint, and waits behind each
// op of the suspected steps.
namespace gpunn::training {

// In the new process: runs the session's steps up to and with `last_step` (counted from 1), from `first_step` on op by
// op, and where `last_step` ends an epoch, its evaluation too.
FaultReport find_fault(Session& session, int64_t first_step, int64_t last_step);

// In the process that lost the device: has `program` (the gpunn program; empty: there is none) look for the fault, and
// says in a sentence or two what came of it.
std::string fault_text(const std::filesystem::path& program, const DiagnoseRequest& request);

}  // namespace gpunn::training
