#include "training/rank_team.hpp"

#include <gpunn/plugins.hpp>
#include <gpunn/version.hpp>

#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "distributed/processors.hpp"
#include "plugins/plugin.hpp"

namespace gpunn::training {

namespace {

// What may differ from machine to machine.
std::string common_part(Experiment experiment) {
  experiment.device = experiment.threads = 0;
  experiment.runs.clear();
  experiment.plugins.clear();
  experiment.data.path.clear();
  return resolved_yaml(experiment);
}

std::string text_of(const PartDigest& part) {
  return fmt::format("{} rows {:08x} {:08x}", part.rows, part.samples, part.targets);
}

std::string plugins_of(Session& session) {
  std::string text;
  const plugins::PluginRegistry registry(session.experiment().plugins);
  for (const std::string& name : session.backend().chain()) {
    for (const PluginReport& report : registry.files()) {
      if (report.name == name && report.status == PluginStatus::ok) {
        text += (text.empty() ? "" : ", ") + name + " " + report.version + " " + distributed::digest_of(report.build);
        break;
      }
    }
  }
  return text;
}

void require_own_devices(Session& session) {
  distributed::Team& team = *session.team();
  const std::string domain = session.backend().info().memory_domain;
  const std::vector<std::string> domains = team.gather(domain == "host" ? std::string() : domain);
  std::map<std::string, int> first;
  for (int rank = 0; rank < team.world(); ++rank) {
    const std::string& one = domains[static_cast<std::size_t>(rank)];
    const auto [other, added] = first.try_emplace(one, rank);
    if (one.empty() || added) continue;
    throw SharedError(team.text_of(other->second) + " and " + team.text_of(rank) + " have one device, " + one +
                          ": start as many ranks as there are devices",
                      ExitCode::usage);
  }
}

}  // namespace

RunResult with_team(const std::optional<RankPlace>& place, TrainingListener* listener,
                    const std::function<RunResult(const std::shared_ptr<distributed::Team>&)>& training) {
  if (!place || place->world == 1) return training(nullptr);
  const std::string binding = distributed::mend_binding(*place);
  const std::shared_ptr<distributed::Team> team = distributed::Team::join(*place);
  if (team->speaks() && listener != nullptr && !binding.empty()) listener->on_message(binding);
  try {
    RunResult result = training(team);
    team->leave();
    return result;
  } catch (const std::exception& error) {
    team->fail(error.what());
    throw;
  }
}

void require_equal_ranks(Session& session) {
  if (session.team() == nullptr) return;
  const DataDigest& data = session.dataset().digest;
  session.team()->require_equal(
      {{"gpunn", version()},
       {"the experiment", distributed::digest_of(common_part(session.experiment()))},
       {"the plugins", plugins_of(session)},
       {"the training data", text_of(data.train)},
       {"the evaluated data",
        text_of(session.dataset().evaluated == EvaluationPart::test ? data.test : data.validation)}});
  require_own_devices(session);
}

}  // namespace gpunn::training
