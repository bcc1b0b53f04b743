// load_experiment and parse_experiment: a YAML tree, walked key by key against the schema.
#include <gpunn/experiment.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>
#include <variant>

#include "common/files.hpp"
#include "common/text.hpp"
#include "config/model_reader.hpp"
#include "config/yaml_tree.hpp"
#include "experiment/experiment_checks.hpp"
#include "experiment/onnx_model.hpp"
#include "experiment/overrides.hpp"
#include "experiment/paths.hpp"
#include "experiment/schema.hpp"
#include "experiment/unknown_key.hpp"
#include "tasks/losses.hpp"
#include "tasks/task.hpp"

namespace gpunn {

namespace fs = std::filesystem;

namespace {

using config::Diagnostics;
using config::Key;
using config::Value;
using config::YamlEntry;
using config::YamlNode;
using Kind = YamlNode::Kind;

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

class ExperimentReader {
 public:
  explicit ExperimentReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void read(const YamlNode& root, Experiment& e) {
    given_.origin = {root.where.file, 0, 0};
    const SourceLocation& origin = given_.origin;
    const YamlNode* model = root.find("model");
    if (model == nullptr && root.find("layers") != nullptr) {
      diagnostics_.add(root.find("layers")->where,
                       "these layers are a model by itself; an experiment names its file, as 'model: " +
                           fs::path(root.where.file).filename().string() + "', and has a section 'data'");
      return;
    }
    for (const YamlEntry& entry : root.entries) {
      if (entry.key == "task") read_key("", entry, e);
    }
    set_default_loss(e);
    for (const YamlEntry& entry : root.entries) {
      if (entry.key == "task" || entry.key == "model") continue;
      if (contains(config::sections(), entry.key)) {
        read_section(entry, e);
      } else {
        read_key("", entry, e);
      }
    }
    if (model != nullptr) {
      read_model(*model, e);
    } else {
      diagnostics_.add(origin, "missing key 'model': the path of a model file, or a model");
    }
    for (const Key& key : config::schema()) {
      if (key.required && given_.places.count(key.path) == 0) {
        const auto section = section_places_.find(key.section());
        diagnostics_.add(section == section_places_.end() ? origin : section->second,
                         "missing key '" + key.path + "': " + config::expectation(key));
      }
    }
    if (ClassWeights* weights = e.loss.class_weights()) {
      weights->class_weights_place = given_.place("loss.class_weights");
    }
    set_task_defaults(e);
    config::check_experiment(e, given_, diagnostics_);
  }

 private:
  // The weights of an ONNX file come with its layers.
  void read_model(const YamlNode& node, Experiment& e) {
    if (!config::names_onnx_model(node)) {
      e.model = config::read_model(node, diagnostics_);
      return;
    }
    e.model = config::read_onnx_model(node, diagnostics_);
    if (!e.init_from.file.empty() || e.model.file.empty()) return;
    std::error_code failed;
    const fs::path file = fs::absolute(e.model.file, failed);
    e.init_from.file = (failed ? e.model.file : file).lexically_normal();
  }

  // Of the task, in front of what is given for it.
  void set_default_loss(Experiment& e) const {
    config::find_key("loss.type")->set(e, tasks::name_of(tasks::find(e.task).losses().front()));
  }

  void set_task_defaults(Experiment& e) const {
    e.data.task = e.task;
    e.data.learnt = tasks::find(e.task).target_kind();
    e.data.order_seed = e.seed;
    e.data.whole_images = !e.augmentation.resized_crop.empty();
    const std::string& telling = tasks::find(e.task).metrics().front().metric.name;
    if (!given_.has("checkpoint.monitor")) e.checkpoint.monitor = telling;
    if (e.early_stopping && !given_.has("early_stopping.monitor")) e.early_stopping->monitor = telling;
  }

  void read_section(const YamlEntry& section, Experiment& e) {
    section_places_.emplace(section.key, section.where);
    if (section.key == "augmentation") e.augmentation.where = section.where;
    if (section.key == "early_stopping" && section.value.kind != Kind::null) e.early_stopping.emplace();
    if (section.value.kind == Kind::null) return;
    if (section.value.kind != Kind::map) {
      diagnostics_.add(section.value.where, section.key + ": expected a map of " + config::keys_text(section.key) +
                                                ", found " + describe(section.value));
      return;
    }
    // The kind comes first: the other keys are members of what it selects.
    const std::string kind = config::kind_key_of(section.key);
    const auto is_kind = [&](const YamlEntry& entry) { return section.key + "." + entry.key == kind; };
    for (const bool wanted : {true, false}) {
      for (const YamlEntry& entry : section.value.entries) {
        if (is_kind(entry) == wanted) read_key(section.key, entry, e);
      }
    }
  }

  void read_key(const std::string& section, const YamlEntry& entry, Experiment& e) {
    const Key* key = config::find_key(section.empty() ? entry.key : section + "." + entry.key);
    if (key == nullptr || key->section() != section) {
      report_unknown(section, entry);
      return;
    }
    given_.places.emplace(key->path, entry.value.from_override ? entry.value.where : entry.where);
    std::optional<Value> value = config::read_value(*key, entry.value, diagnostics_);
    if (!value) {
      given_.bad.insert(key->path);
      return;
    }
    key->set(e, *value);
  }

  void report_unknown(const std::string& section, const YamlEntry& entry) {
    const std::string where = section.empty() ? "the experiment" : section;
    for (const Key& key : config::schema()) {
      if (key.section() == section && key.formerly == entry.key) {
        diagnostics_.add(entry.where, "unknown key " + in_quotes(entry.key) + " in " + where + "; it is called " +
                                          in_quotes(key.name()) + " now");
        return;
      }
    }
    const std::string value = entry.value.kind == Kind::scalar ? entry.value.scalar : std::string();
    diagnostics_.add(entry.where, "unknown key " + in_quotes(entry.key) + " in " + where +
                                      config::key_advice(section, entry.key, value));
  }

  Diagnostics& diagnostics_;
  config::GivenKeys given_;
  std::map<std::string, SourceLocation> section_places_;
};

std::string default_name(const fs::path& file) {
  std::string name = file.stem().string();
  for (char& c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    if (!plain) c = '_';
  }
  return name.empty() || name.front() == '.' ? "experiment" : name;
}

Experiment read(const std::string& text, const std::string& origin, const fs::path& folder,
                const std::vector<Override>& overrides) {
  YamlNode root = config::parse_yaml(text, origin);
  if (root.kind != Kind::map) {
    config::fail_at(root.where, "expected an experiment: a map with 'model' and 'data', found " + describe(root));
  }
  Experiment e;
  e.file = origin;
  e.name = default_name(origin);
  Diagnostics diagnostics;
  config::expand_short_forms(root);
  e.text = config::resolve_paths(root, folder, text);
  e.notes = config::apply_overrides(root, overrides, diagnostics);
  config::expand_short_forms(root);
  config::resolve_paths(root, {}, {});  // those of the command line
  ExperimentReader(diagnostics).read(root, e);
  diagnostics.throw_if_any();
  return e;
}

// Other experiments in the folder of one that is not there.
std::string near_files(const fs::path& file) {
  std::vector<std::string> names;
  std::error_code failed;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    if (it->path().extension() == ".yaml") names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return did_you_mean(file.filename().string(), names);
}

}  // namespace

Experiment load_experiment(const fs::path& file, const std::vector<Override>& overrides) {
  if (const std::string_view about = explanation(file.extension().string()); !about.empty()) {
    config::fail_at({},
                    "expected an experiment (.yaml), found " + in_quotes(file.string()) + ". " + std::string(about));
  }
  std::string text;
  try {
    text = read_text(file, config::kLargestYamlFile);
  } catch (const Error& error) {
    std::error_code ignored;
    config::fail_at({}, error.what() + (fs::exists(file, ignored) ? "" : near_files(file)));
  }
  return read(text, file.string(), file.parent_path(), overrides);
}

Experiment parse_experiment(const std::string& text, const std::string& origin,
                            const std::vector<Override>& overrides) {
  return read(text, origin, fs::path(), overrides);
}

}  // namespace gpunn
