#pragma once

#include <cstdint>
#include <string>

#include "session/session.hpp"

namespace gpunn::training {

// Replays a training from `snapshot` up to and with `step`, whose loss was not finite, and says which op first produced
// a NaN or an infinity: "the first op with a non-finite result is CONV2D 'conv1' at step 12 (inf)". Costs nothing until
// it is needed, since every step is a function of the state and the step number. Leaves the session in the bad state.
std::string find_divergence(Session& session, const storage::Checkpoint& snapshot, int64_t step);

}  // namespace gpunn::training
