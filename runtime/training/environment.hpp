#pragma once

#include <string>

#include "training/session.hpp"

namespace gpunn::training {

// What a run's figures depend on besides its experiment, as a JSON document: program and library versions, machine,
// backend, data.
std::string environment_record(Session& session);

std::string utc_now();  // "2026-11-20T16:08:00Z"

}  // namespace gpunn::training
