#pragma once

#include <gpunn/evaluation.hpp>

#include <cstdint>

#include "session/session.hpp"

namespace gpunn::training {

// The session's parameters on its evaluated split, with what the task shows of it: at most `worst` rows or pictures.
ClassEvalReport evaluate_classes(Session& session, int64_t worst);

}  // namespace gpunn::training
