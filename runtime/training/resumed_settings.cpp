#include "training/resumed_settings.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "common/files.hpp"
#include "common/text.hpp"
#include "experiment/overrides.hpp"
#include "runs/model_info.hpp"
#include "session/schedule.hpp"
#include "session/training_length.hpp"

namespace gpunn::training {

namespace {

namespace fs = std::filesystem;
using config::YamlNode;

using Settings = std::map<std::string, std::string>;  // by full key

std::string in_flow(const YamlNode& node) {
  std::vector<std::string> items;
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "null";
    case YamlNode::Kind::scalar:
      return node.quoted ? config::yaml_text(node.scalar) : node.scalar;
    case YamlNode::Kind::list:
      for (const YamlNode& item : node.items) items.push_back(in_flow(item));
      return "[" + join(items, ", ") + "]";
    case YamlNode::Kind::map:
      for (const config::YamlEntry& entry : node.entries) items.push_back(entry.key + ": " + in_flow(entry.value));
      return "{" + join(items, ", ") + "}";
  }
  return "";
}

void add_settings(const YamlNode& node, const std::string& prefix, Settings& settings) {
  for (const config::YamlEntry& entry : node.entries) {
    if (entry.value.kind == YamlNode::Kind::map) {
      add_settings(entry.value, prefix + entry.key + ".", settings);
    } else {
      settings[prefix + entry.key] = in_flow(entry.value);
    }
  }
}

// Empty: the text is no YAML.
std::optional<Settings> settings_in(const std::string& text) {
  try {
    YamlNode root = config::parse_yaml(text, "");
    config::expand_short_forms(root);
    Settings settings;
    add_settings(root, "", settings);
    return settings;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// As words of a shell.
std::string set_option(const std::string& key, const std::string& value) {
  const std::string word = key + "=" + value;
  const bool plain = value.find_first_of(" '\"[]{}*?$&;|<>()#\\`!~") == std::string::npos && !value.empty();
  return plain ? "--set " + word : "--set " + in_quotes(word);
}

// Whether a text stands for the same value: 1e-3 is 0.001.
bool same_value(const std::string& one, const std::string& other) {
  const std::optional<double> number = config::number_of(one);
  return one == other || (number && number == config::number_of(other));
}

// Which settings of the file at `edited` differ from those of `before`, and from those that the run has by now.
std::string notice_of(const fs::path& edited, const std::string& before, const std::string& current,
                      const std::vector<std::string>& ignored) {
  if (!path_exists(edited)) return "";
  const std::string text = read_text(edited);
  if (text == before) return "";
  std::string head = "note: a run is resumed by the experiment in its last.h5. " + edited.string() +
                     " differs from it, which changes nothing";
  const std::optional<Settings> then = settings_in(before), now = settings_in(text);
  if (!then || !now) return head;
  const Settings used = settings_in(current).value_or(Settings());
  std::vector<std::string> changed, options;
  const auto is_ignored = [&](const std::string& key) {
    return std::ranges::any_of(ignored,
                               [&](const std::string& one) { return key == one || key.starts_with(one + "."); });
  };
  for (const auto& [key, value] : *now) {
    const auto found = then->find(key);
    if (is_ignored(key) || (found != then->end() && found->second == value)) continue;
    const auto in_use = used.find(key);
    if (in_use != used.end() && same_value(in_use->second, value)) continue;
    changed.push_back(key + ": " + value + (found == then->end() ? " (new)" : " (was " + found->second + ")"));
    options.push_back(set_option(key, value));
  }
  for (const auto& [key, value] : *then) {
    if (!is_ignored(key) && !now->contains(key)) changed.push_back(key + " (left out, was " + value + ")");
  }
  if (changed.empty()) return "";
  std::string notice = head + ":\n  " + join(changed, "\n  ");
  if (!options.empty()) notice += "\nTo change these, resume with " + join(options, " ");
  return notice;
}

}  // namespace

void require_own_checkpoint(const fs::path& run, const fs::path& checkpoint, const std::string& name) {
  const fs::path resolved = run / "resolved.yaml";
  if (!path_exists(resolved)) return;
  const std::optional<Settings> settings = settings_in(read_text(resolved));
  if (!settings || !settings->contains("name") || settings->at("name") == config::yaml_text(name) ||
      settings->at("name") == name) {
    return;
  }
  throw Error(checkpoint.string() + ": a checkpoint of another experiment, '" + name + "'; this folder is a run of '" +
                  settings->at("name") + "'",
              ExitCode::usage);
}

void keep_schedule(Experiment& experiment, const storage::Checkpoint& checkpoint, const fs::path& file) {
  if (experiment.schedule.length > 0 || config::row_of(schedule_rows(), experiment.schedule).reacts) return;
  const Experiment before = experiment_of(checkpoint, file, {});
  const auto counter = [&](const char* name) {
    const auto found = checkpoint.counters.find(name);
    return found == checkpoint.counters.end() ? int64_t{0} : found->second;
  };
  const Origin origin = origin_of(checkpoint);
  TrainingLength length{.steps_per_epoch = std::max<int64_t>(counter("steps_per_epoch"), 1),
                        .steps = counter("total_steps")};
  length.shift = origin.epoch * length.steps_per_epoch + origin.in_epoch - origin.step;
  if (length.steps == 0) {  // a checkpoint of gpunn 0.2 or earlier
    length.steps = before.epochs * length.steps_per_epoch;
    if (before.max_steps > 0) length.steps = std::min(length.steps, before.max_steps);
  }
  experiment.schedule.length = schedule_length(before, length);
}

std::vector<std::string> edited_files_notices(const fs::path& run, const storage::Checkpoint& checkpoint,
                                              const std::vector<Override>& overrides) {
  std::vector<std::string> set;
  for (const Override& override : overrides) set.push_back(override.key);
  std::vector<std::string> notices;
  const auto add = [&](const char* name, const std::string& before, const std::vector<std::string>& ignored) {
    if (before.empty()) return;
    const std::string notice = notice_of(run / name, before, checkpoint.experiment, ignored);
    if (!notice.empty()) notices.push_back(notice);
  };
  add("experiment.yaml", checkpoint.given, set);
  // These keys may differ without an edit: the checkpoint has the data set and the backend that were used.
  for (const char* key : {"data.dataset", "data.offline_fallback", "data.mean", "data.stddev", "backend"}) {
    set.emplace_back(key);
  }
  add("resolved.yaml", checkpoint.experiment, set);
  return notices;
}

}  // namespace gpunn::training
