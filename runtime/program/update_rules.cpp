#include "program/update_rules.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <variant>

#include "common/pattern.hpp"
#include "common/text.hpp"
#include "optim/optimizer/optimizer_rows.hpp"

namespace gpunn::training {

namespace {

constexpr std::size_t kMostListed = 12;  // names in a message

// A line for each pattern that no parameter's name matches.
void check_patterns(const std::string& key, const std::vector<std::string>& patterns,
                    const std::vector<std::string>& names, std::string& errors) {
  for (const std::string& pattern : patterns) {
    const auto fits = [&](const std::string& name) { return matches(pattern, name); };
    if (std::ranges::any_of(names, fits)) continue;
    const std::string near = did_you_mean(pattern, names);
    std::vector<std::string> listed(names.begin(),
                                    names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMostListed)));
    if (listed.size() < names.size()) listed.emplace_back("...");
    errors += "\n  " + key + ": '" + pattern + "' matches no parameter" +
              (near.empty() ? "; there are " + join(listed, ", ") : near);
  }
}

bool decays(const nn::Parameter& parameter, const std::vector<ParameterGroup>& groups, int group) {
  if (group < 0) return parameter.decayed;
  const auto& given = groups[static_cast<std::size_t>(group)].weight_decay;
  if (const bool* all = std::get_if<bool>(&given)) return *all;
  if (const double* number = std::get_if<double>(&given)) return *number > 0;
  return parameter.decayed;
}

}  // namespace

std::vector<UpdateRule> update_rules(const std::vector<nn::Parameter>& parameters, const Experiment& experiment) {
  const std::vector<ParameterGroup>& groups = experiment.optimizer.groups;
  std::vector<std::string> names;
  for (const nn::Parameter& parameter : parameters) names.push_back(parameter.name);
  std::string errors;
  check_patterns("training.freeze", experiment.freeze, names, errors);
  for (const ParameterGroup& group : groups) check_patterns("optimizer.groups", group.match, names, errors);

  const bool matrices = config::row_of(optimizer_rows(), experiment.optimizer).orthogonal_matrices;
  std::vector<UpdateRule> rules;
  std::vector<bool> used(groups.size(), false);
  for (const nn::Parameter& parameter : parameters) {
    UpdateRule rule;
    rule.frozen = any_matches(experiment.freeze, parameter.name);
    for (std::size_t i = 0; i < groups.size() && rule.group < 0 && !rule.frozen; ++i) {
      if (any_matches(groups[i].match, parameter.name)) rule.group = static_cast<int>(i);
    }
    if (rule.group >= 0) used[static_cast<std::size_t>(rule.group)] = true;
    rule.decays = decays(parameter, groups, rule.group);
    rule.matrix = matrices && !rule.frozen && parameter.decayed && parameter.shape.size() >= 2;
    rules.push_back(rule);
  }
  if (errors.empty()) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (used[i]) continue;
      errors += "\n  optimizer.groups: what '" + join(groups[i].match, "', '") +
                "' matches is frozen, or in a group further up";
    }
    if (!rules.empty() && std::ranges::all_of(rules, &UpdateRule::frozen)) {
      errors += "\n  training.freeze: nothing is left to train";
    }
  }
  if (!errors.empty()) throw Error(experiment.file.string() + ":" + errors, ExitCode::usage);
  return rules;
}

std::vector<std::string> frozen_norms(const Experiment& experiment, const std::vector<nn::Parameter>& parameters,
                                      const std::vector<UpdateRule>& rules, const std::vector<nn::Parameter>& buffers) {
  std::map<std::string, bool> frozen;  // by layer
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    bool& all = frozen.try_emplace(parameters[i].layer, true).first->second;
    all = all && rules[i].frozen;
  }
  std::vector<std::string> norms;
  for (const nn::Parameter& buffer : buffers) {
    const auto found = frozen.find(buffer.layer);
    if (found == frozen.end() || !found->second) continue;
    if (norms.empty() || norms.back() != buffer.layer) norms.push_back(buffer.layer);
  }
  if (experiment.freeze_statistics && norms.empty()) {
    throw Error(experiment.file.string() +
                    ": training.freeze_statistics: training.freeze matches weight and bias of no batch norm; "
                    "freeze some, or leave freeze_statistics out",
                ExitCode::usage);
  }
  return norms;
}

GroupUpdate group_update(const OptimizerConfig& optimizer, int group) {
  if (group < 0) return {.rate_factor = 1, .weight_decay = optimizer.weight_decay};
  const ParameterGroup& given = optimizer.groups[static_cast<std::size_t>(group)];
  const double* own = std::get_if<double>(&given.weight_decay);
  return {.rate_factor = given.learning_rate_factor, .weight_decay = own != nullptr ? *own : optimizer.weight_decay};
}

}  // namespace gpunn::training
