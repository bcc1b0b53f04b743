#include "distributed/rank_environment.hpp"

#include <gpunn/error.hpp>

#include <map>

#include "catch.hpp"

using namespace gpunn;
using namespace gpunn::distributed;

namespace {

std::optional<RankPlace> rank_in(const std::map<std::string, std::string>& variables) {
  return rank_of([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string error_in(const std::map<std::string, std::string>& variables) {
  try {
    rank_in(variables);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the environment of each launcher says who a process is") {
  struct Row {
    std::map<std::string, std::string> variables;
    RankPlace place;
  };
  const std::vector<Row> rows = {
      {{{"GPUNN_RANK", "1"},
        {"GPUNN_WORLD", "2"},
        {"GPUNN_LOCAL_RANK", "1"},
        {"GPUNN_LOCAL_WORLD", "2"},
        {"GPUNN_RENDEZVOUS", "127.0.0.1:4000"},
        {"GPUNN_JOB", "a"}},
       {1, 2, 1, 2, "127.0.0.1:4000", "a", "gpunn run --devices"}},
      {{{"OMPI_COMM_WORLD_RANK", "3"},
        {"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
        {"GPUNN_RENDEZVOUS", "node1:4000"}},
       {3, 4, 1, 2, "node1:4000", "", "Open MPI"}},
      {{{"TORCHELASTIC_RUN_ID", "r"},
        {"RANK", "0"},
        {"WORLD_SIZE", "2"},
        {"LOCAL_RANK", "0"},
        {"LOCAL_WORLD_SIZE", "1"},
        {"MASTER_ADDR", "10.0.0.1"},
        {"MASTER_PORT", "29500"}},
       {0, 2, 0, 1, "10.0.0.1:29501", "r", "torchrun"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}},
       {0, 2, 0, 1, "10.0.0.1:29500", "", "MASTER_ADDR and RANK"}},
  };
  for (const Row& row : rows) {
    const RankPlace found = rank_in(row.variables).value();
    INFO(row.place.launcher);
    CHECK(found.launcher == row.place.launcher);
    CHECK(found.rank == row.place.rank);
    CHECK(found.world == row.place.world);
    CHECK(found.local_rank == row.place.local_rank);
    CHECK(found.local_world == row.place.local_world);
    CHECK(found.rendezvous == row.place.rendezvous);
    CHECK(found.job == row.place.job);
  }
}

TEST_CASE("Slurm's steps and lists of nodes") {
  std::map<std::string, std::string> step = {{"SLURM_STEP_NUM_TASKS", "7"},
                                             {"SLURM_PROCID", "6"},
                                             {"SLURM_LOCALID", "0"},
                                             {"SLURM_NODEID", "2"},
                                             {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"},
                                             {"SLURM_STEP_NODELIST", "node[07-09]"},
                                             {"SLURM_JOB_ID", "812"},
                                             {"SLURM_STEP_ID", "0"}};
  const RankPlace place = rank_in(step).value();
  CHECK(place.rank == 6);
  CHECK(place.local_world == 1);
  CHECK(place.rendezvous.starts_with("node07:2"));
  step["SLURM_NODEID"] = "1";
  CHECK(rank_in(step)->local_world == 3);
  step["SLURM_STEP_ID"] = "1";  // another step of the job, another port
  CHECK(rank_in(step)->rendezvous != place.rendezvous);

  step.erase("SLURM_STEP_NUM_TASKS");  // a batch script, which srun did not start
  CHECK_FALSE(rank_in(step));

  CHECK(first_host("login") == "login");
  CHECK(first_host("a1,a2") == "a1");
  CHECK(first_host("n[3,7-9]-ib,m1") == "n3-ib");
}

TEST_CASE("an environment that says a part is refused, with the variable that is missing") {
  CHECK_FALSE(rank_in({}));
  CHECK_FALSE(rank_in({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
  CHECK_THAT(error_in({{"OMPI_COMM_WORLD_RANK", "0"}}), Contains("OMPI_COMM_WORLD_SIZE is not"));
  CHECK_THAT(error_in({{"GPUNN_RANK", "2"}, {"GPUNN_WORLD", "2"}}), Contains("count from 0"));
  CHECK_THAT(error_in({{"GPUNN_RANK", "x"}, {"GPUNN_WORLD", "2"}}), Contains("GPUNN_RANK is 'x'"));
  CHECK_THAT(error_in({{"OMPI_COMM_WORLD_RANK", "0"},
                       {"OMPI_COMM_WORLD_SIZE", "4"},
                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                       {"PMIX_NAMESPACE", "j"}}),
             Contains("--rendezvous HOST:PORT"));
  CHECK_THROWS_AS(rank_from_options(1, 2, ""), Error);
  CHECK_THROWS_AS(rank_from_options(2, 2, "a:1"), Error);
}
