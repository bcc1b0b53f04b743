#pragma once

#include <gpunn/ranks.hpp>

#include <string>

namespace gpunn::distributed {

// How many processors a rank may keep busy: those that its launcher bound it to, else its part of the machine's.
int processors_of_rank(const RankPlace& place);

// Open MPI binds each rank to a single core by default, and a team of threads on one core is slower than one thread.
// This gives the process all processors back, before it has threads. Returns a message for the user; empty: nothing was
// changed.
std::string mend_binding(const RankPlace& place);

}  // namespace gpunn::distributed
