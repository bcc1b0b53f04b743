#include "distributed/processors.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include <sched.h>
#include <unistd.h>

namespace gpunn::distributed {

namespace {

int allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return static_cast<int>(std::thread::hardware_concurrency());
  return std::max(CPU_COUNT(&set), 1);
}

// What the user asked mpirun for, if anything.
bool binding_was_asked_for() {
  for (const char* name : {"OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy"}) {
    if (std::getenv(name) != nullptr) return true;  // NOLINT(concurrency-mt-unsafe)
  }
  return false;
}

}  // namespace

int processors_of_rank(const RankPlace& place) {
  const int allowed = allowed_processors();
  const auto online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const bool bound = place.local_world > 1 && allowed <= online / place.local_world;
  return std::max(bound ? allowed : allowed / place.local_world, 1);
}

std::string mend_binding(const RankPlace& place) {
  const int bound = allowed_processors();
  if (place.launcher != "Open MPI" || binding_was_asked_for()) return "";
  const auto online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  if (bound * place.local_world >= online) return "";
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int i = 0; i < CPU_SETSIZE; ++i) CPU_SET(i, &all);
  // The system leaves out what this process may not use.
  if (::sched_setaffinity(0, sizeof(all), &all) != 0) return "";
  const int now = allowed_processors();
  if (now <= bound) return "";
  return "Open MPI bound each rank to " + std::to_string(bound) + " of " + std::to_string(now) +
         " processors; each now has " + std::to_string(std::max(now / place.local_world, 1)) +
         " threads (mpirun --bind-to none does the same)";
}

}  // namespace gpunn::distributed
