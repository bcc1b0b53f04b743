#include "distributed/rank_environment.hpp"

#include <gpunn/error.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/hash.hpp"
#include "common/parse_number.hpp"

namespace gpunn::distributed {

namespace {

// Ports of jobs whose launcher names none: below those that systems give out by themselves (from 32768 on).
constexpr uint64_t kFirstPort = 20000, kPorts = 12000;

// The variables of a launcher; nullptr: it has no such variable.
struct Launcher {
  const char* name;
  const char* sign;  // is set where this launcher started the process
  const char* rank;
  const char* world;
  const char* local_rank;
  const char* local_world;
  const char* job;
};

constexpr Launcher kLaunchers[] = {
    {"gpunn run --devices", "GPUNN_RANK", "GPUNN_RANK", "GPUNN_WORLD", "GPUNN_LOCAL_RANK", "GPUNN_LOCAL_WORLD",
     "GPUNN_JOB"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"torchrun", "TORCHELASTIC_RUN_ID", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    {"MPICH", "PMI_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID"},
    // A batch script has most of these too; the number of tasks of a step only what srun started.
    {"Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, "SLURM_JOB_ID"},
    {"MASTER_ADDR and RANK", "MASTER_ADDR", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", nullptr},
};

int number_of(const std::string& name, const std::string& text, int lowest) {
  if (const std::optional<int> value = parse_number<int>(text); value && *value >= lowest) return *value;
  throw Error(name + " is '" + text + "'; expected a whole number of at least " + std::to_string(lowest),
              ExitCode::usage);
}

// "3(x2),1" of SLURM_STEP_TASKS_PER_NODE, for the node of this number.
int tasks_of_node(const std::string& list, int node) {
  std::size_t at = 0;
  while (at < list.size()) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string part = list.substr(at, end - at);
    const std::size_t times = part.find("(x");
    const int tasks = number_of("SLURM_STEP_TASKS_PER_NODE", part.substr(0, times), 1);
    const int nodes = times == std::string::npos
                          ? 1
                          : number_of("SLURM_STEP_TASKS_PER_NODE", part.substr(times + 2, part.size() - times - 3), 1);
    if (node < nodes) return tasks;
    node -= nodes;
    at = end + 1;
  }
  return 1;
}

std::string value_or(const Environment& environment, const std::string& name, const std::string& otherwise) {
  const std::optional<std::string> value = environment(name);
  return value && !value->empty() ? *value : otherwise;
}

std::string port_of(const std::string& job) { return std::to_string(kFirstPort + hash_of(job) % kPorts); }

// Where the launcher has rank 0 listen; empty: it does not say, and the ranks are on several machines.
std::string rendezvous_of(const Environment& environment, const RankPlace& place) {
  if (std::string own = value_or(environment, "GPUNN_RENDEZVOUS", ""); !own.empty()) return own;
  if (const std::string master = value_or(environment, "MASTER_ADDR", ""); !master.empty()) {
    const int port = number_of("MASTER_PORT", value_or(environment, "MASTER_PORT", "29500"), 1);
    // torchrun itself listens at its port.
    return master + ":" + std::to_string(place.launcher == "torchrun" ? port + 1 : port);
  }
  if (const std::string nodes = value_or(environment, "SLURM_STEP_NODELIST", ""); !nodes.empty()) {
    return first_host(nodes) + ":" + port_of(place.job + value_or(environment, "SLURM_STEP_ID", ""));
  }
  if (place.local_world == place.world && !place.job.empty()) return "127.0.0.1:" + port_of(place.job);
  return "";
}

}  // namespace

std::string first_host(const std::string& list) {
  const std::size_t end = std::min(list.find_first_of(",["), list.size());
  std::string host = list.substr(0, end);
  if (end < list.size() && list[end] == '[') {
    const std::size_t stop = std::min(list.find_first_of(",-]", end), list.size());
    host += list.substr(end + 1, stop - end - 1);
    const std::size_t close = list.find(']', end);
    if (close != std::string::npos) {
      host += list.substr(close + 1, std::min(list.find(',', close), list.size()) - close - 1);
    }
  }
  return host;
}

std::optional<RankPlace> rank_of(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (!environment(launcher.sign)) continue;
    const auto need = [&](const char* name) {
      const std::optional<std::string> value = environment(name);
      if (value) return *value;
      throw Error(std::string(launcher.sign) + " is set, as by " + launcher.name + ", but " + name +
                      " is not: set both, or neither to train with one process",
                  ExitCode::usage);
    };
    RankPlace place;
    place.launcher = launcher.name;
    place.world = number_of(launcher.world, need(launcher.world), 1);
    place.rank = number_of(launcher.rank, need(launcher.rank), 0);
    if (place.rank >= place.world) {
      throw Error(std::string(launcher.rank) + " is " + std::to_string(place.rank) + " and " + launcher.world + " " +
                      std::to_string(place.world) + ": ranks count from 0 and are less than the world",
                  ExitCode::usage);
    }
    if (place.world == 1) return std::nullopt;
    place.local_rank = number_of(launcher.local_rank, value_or(environment, launcher.local_rank, "0"), 0);
    if (launcher.local_world != nullptr) {
      place.local_world = number_of(launcher.local_world, value_or(environment, launcher.local_world, "1"), 1);
    } else {
      place.local_world = tasks_of_node(value_or(environment, "SLURM_STEP_TASKS_PER_NODE", "1"),
                                        number_of("SLURM_NODEID", value_or(environment, "SLURM_NODEID", "0"), 0));
    }
    if (launcher.job != nullptr) place.job = value_or(environment, launcher.job, "");
    place.rendezvous = rendezvous_of(environment, place);
    if (place.rendezvous.empty()) {
      throw Error(place.launcher +
                      " does not say where rank 0 is to be found: give every rank --rendezvous HOST:PORT, or the "
                      "variable GPUNN_RENDEZVOUS, with a free port of the machine of rank 0",
                  ExitCode::usage);
    }
    return place;
  }
  return std::nullopt;
}

}  // namespace gpunn::distributed

namespace gpunn {

std::optional<RankPlace> find_rank() {
  return distributed::rank_of([](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets variables
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  });
}

RankPlace rank_from_options(std::optional<int64_t> rank, std::optional<int64_t> world, const std::string& rendezvous) {
  if (!rank || !world || rendezvous.empty()) {
    throw Error("--rank, --world and --rendezvous HOST:PORT go together: give each process all three", ExitCode::usage);
  }
  if (*world < 1 || *rank < 0 || *rank >= *world) {
    throw Error("--rank " + std::to_string(*rank) + " --world " + std::to_string(*world) +
                    ": ranks count from 0 and are less than the world",
                ExitCode::usage);
  }
  return {.rank = static_cast<int>(*rank),
          .world = static_cast<int>(*world),
          .local_rank = 0,
          .local_world = 1,
          .rendezvous = rendezvous,
          .job = "",
          .launcher = "--rank"};
}

}  // namespace gpunn
