#include "training/environment.hpp"

#include <gpunn/clock.hpp>
#include <gpunn/version.hpp>

#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>
#include <sys/utsname.h>
#include <unistd.h>

#include "feed/residency.hpp"

namespace gpunn::training {

using nlohmann::json;

std::string environment_record(Session& session) {
  json build = json::array();
  std::istringstream lines(build_record());
  for (std::string line; std::getline(lines, line);) build.push_back(line);

  utsname system{};
  uname(&system);
  const execution::Backend& backend = session.backend();
  const gpunn_device_info& device = backend.info();
  const Dataset& data = session.dataset();
  json record{
      {"time", utc_time()},
      {"gpunn", version()},
      {"build", build},
      {"system", std::string(system.sysname) + " " + system.release + " " + system.machine},
      {"processors", std::thread::hardware_concurrency()},
      {"backend", backend.name()},
      {"backend_chain", backend.chain()},
      {"device",
       {{"name", device.name},
        {"driver", device.driver},
        {"memory_domain", device.memory_domain},
        {"compute_units", device.compute_units},
        {"total_bytes", device.total_bytes}}},
      {"data",
       {{"name", data.name},
        {"source", data.source},
        {"train_samples", data.train.rows()},
        {std::string(name_of(data.evaluated)) + "_samples", data.test.rows()},
        {"residency", name_of(session.data().residency())},
        {"bytes", session.data_bytes()}}},
      {"parameters", session.layout().count()},
      {"arena_bytes", session.arena_bytes()},
      {"persistent_bytes", session.persistent_bytes()},
  };
  if (!data.fallback_of.empty()) record["data"]["instead_of"] = data.fallback_of;
  return record.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace gpunn::training
