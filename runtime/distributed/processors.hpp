#pragma once

#include <gpunn/ranks.hpp>

#include <string>

namespace gpunn::distributed {

// How many processors a rank may keep busy: those that its launcher bound it to, else its part of the machine's.
int processors_of_rank(const RankPlace& place);

// Open MPI binds each rank to a single core unless it is told otherwise, and a team of threads on one core is slower
// than one thread. Gives this process, which has no threads yet, all processors back. Returns what the user should
// know; empty: nothing was changed.
std::string mend_binding(const RankPlace& place);

}  // namespace gpunn::distributed
