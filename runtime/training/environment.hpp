#pragma once

#include <string>

#include "session/session.hpp"

namespace gpunn::training {

// What a run's figures depend on besides its experiment, as a JSON document: program and library versions, machine,
// backend, data.
std::string environment_record(Session& session);

}  // namespace gpunn::training
