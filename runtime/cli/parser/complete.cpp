#include "cli/parser/complete.hpp"

#include <gpunn/bench.hpp>
#include <gpunn/check.hpp>
#include <gpunn/data.hpp>
#include <gpunn/experiment.hpp>
#include <gpunn/plugins.hpp>
#include <gpunn/vocabulary.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>

namespace gpunn::cli {

namespace {

namespace fs = std::filesystem;

using Completions = std::vector<Completion>;

// The line typed so far.
struct Line {
  const CLI::App* verb = nullptr;
  std::vector<std::string> arguments;   // those known by their place
  const CLI::Option* option = nullptr;  // whose value comes next
  bool only_arguments = false;          // behind "--"
  std::vector<fs::path> plugins;        // given with --plugin
};

void append(Completions& to, const Completions& more) { to.insert(to.end(), more.begin(), more.end()); }

Completions named(const std::vector<std::string>& words) {
  Completions result;
  for (const std::string& word : words) result.push_back({word, ""});
  return result;
}

// The files in the folder of `typed` with one of these endings (empty: any), and all folders.
Completions files(const std::string& typed, const std::vector<std::string>& endings) {
  const std::size_t slash = typed.rfind('/');
  const std::string folder = slash == std::string::npos ? std::string() : typed.substr(0, slash + 1);
  Completions result;
  std::error_code failed;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, failed), end; !failed && it != end;
       it.increment(failed)) {
    const std::string name = it->path().filename().string();
    const bool wanted = endings.empty() ||
                        std::ranges::any_of(endings, [&](const std::string& ending) { return name.ends_with(ending); });
    std::error_code ignored;
    const bool is_folder = it->is_directory(ignored);
    if (name.front() == '.' && typed.substr(folder.size()).empty()) continue;
    if (is_folder || wanted) result.push_back({folder + name + (is_folder ? "/" : ""), ""});
  }
  std::ranges::sort(result, {}, &Completion::word);
  return result;
}

Completions backends(const Line& line, bool automatic) {
  Completions result;
  if (automatic) result.push_back({"auto", "the fastest that works here"});
  for (const PluginReport& report : list_plugins(line.plugins)) {
    if (report.status == PluginStatus::ok) result.push_back({report.name, ""});
  }
  return result;
}

Completions datasets() {
  Completions result;
  for (const DatasetInfo& set : list_datasets()) result.push_back({set.name, set.description});
  return result;
}

// In lower case if the typed beginning is.
Completions ops(std::vector<std::string> names, const std::string& typed) {
  if (!typed.empty() && std::islower(static_cast<unsigned char>(typed.front())) != 0) {
    for (std::string& name : names) {
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    }
  }
  return named(names);
}

std::string first_sentence(std::string text) {
  std::erase(text, '`');
  return text.substr(0, text.find(". "));
}

// "optimizer" for "optimizer.type": the section accepts the type alone, too.
std::string short_form(const std::string& path) {
  for (const std::string_view ending : {".type", ".dataset"}) {
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  }
  return {};
}

// The parameters of the model of the experiment that the line names.
Completions model_parameters(const Line& line) {
  Completions result;
  try {
    for (const std::string& argument : line.arguments) {
      if (!argument.ends_with(".yaml") && !argument.ends_with(".yml")) continue;
      for (const auto& [name, value] : load_experiment(argument, {}).model.parameters) {
        result.push_back({"model.parameters." + name + "=", "default: " + value});
      }
    }
  } catch (const std::exception&) {  // the file is missing, or has mistakes still
    return {};
  }
  return result;
}

Completions settings(const Line& line, const std::string& typed) {
  const std::size_t equals = typed.find('=');
  Completions result;
  if (equals == std::string::npos) {
    for (const KeyInfo& key : experiment_keys()) {
      if (const std::string section = short_form(key.path); !section.empty()) result.push_back({section + "=", ""});
      result.push_back({key.path + "=", first_sentence(key.help)});
    }
    append(result, model_parameters(line));
    return result;
  }
  const std::string path = typed.substr(0, equals), prefix = typed.substr(0, equals + 1);
  const std::string value = typed.substr(equals + 1);
  for (const KeyInfo& key : experiment_keys()) {
    if (key.path != path && short_form(key.path) != path) continue;
    append(result, named(key.choices));
    if (key.value == "a path" || key.value == "a list of paths") append(result, files(value, {}));
  }
  if (path == "backend") append(result, backends(line, true));
  if (path == "model" || path == "model.file") append(result, files(value, {".yaml", ".yml"}));
  for (Completion& one : result) one.word = prefix + one.word;
  return result;
}

Completions help_topics(const std::vector<std::string>& before) {
  Completions result;
  if (before.empty()) return result;
  if (before.front() == "layers") {
    for (const LayerInfo& layer : layer_types()) result.push_back({layer.name, first_sentence(layer.help)});
  } else if (before.front() == "keys") {
    std::string section;
    for (const KeyInfo& key : experiment_keys()) {
      const std::string here = key.path.substr(0, key.path.find('.'));
      if (here != key.path && here != section) result.push_back({here, ""});
      if (here != key.path) section = here;
      result.push_back({key.path, first_sentence(key.help)});
    }
  }
  return result;
}

// The candidates for a placeholder.
Completions placeholder(const std::string& name, const Line& line, const std::string& typed) {
  if (name == "BACKEND") return backends(line, line.option != nullptr);
  if (name == "KEY=VALUE") return settings(line, typed);
  if (name == "EXPERIMENT") return files(typed, {".yaml", ".yml"});
  if (name == "CHECKPOINT") return files(typed, {".h5"});
  if (name == "RUN" || name == "DIR") return files(typed, {"/"});  // folders alone
  if (name == "DATASET") return datasets();
  if (name == "SUITE") return named(check_suites());
  if (name == "OP") return ops(line.verb->get_name() == "bench" ? bench_op_names() : check_ops(), typed);
  if (name == "SECTION" || name == "LAYER") return help_topics(line.arguments);
  if (name == "FILE" || name == "PATH") return files(typed, {});
  if (name.starts_with("FILE.")) return files(typed, {name.substr(4)});
  return {};
}

std::vector<std::string> pieces_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

bool stands_for_itself(const std::string& word) {
  return std::ranges::none_of(word, [](unsigned char c) { return std::isupper(c) != 0; });
}

// A placeholder is a list of alternatives between bars, each a sequence of words: "op OP SHAPE... | kernels |
// EXPERIMENT". `before` are the values in front of this one.
Completions values_of_type(std::string type, const Line& line, const std::vector<std::string>& before,
                           const std::string& typed) {
  std::erase_if(type, [](char c) { return c == '[' || c == ']' || c == '(' || c == ')'; });
  Completions result;
  for (const std::string& alternative : pieces_of(type, '|')) {
    std::istringstream in(alternative);
    std::vector<std::string> sequence;
    for (std::string word; in >> word;) sequence.push_back(word);
    if (sequence.empty()) continue;
    const bool repeats = sequence.back().ends_with("...");
    if (repeats) sequence.back().resize(sequence.back().size() - 3);
    std::size_t place = before.size();
    if (place >= sequence.size()) {
      if (sequence.size() > 1 && !repeats) continue;
      place = sequence.size() - 1;
    }
    bool fits = true;
    for (std::size_t i = 0; i < std::min(before.size(), sequence.size()); ++i) {
      if (sequence.size() > 1 && stands_for_itself(sequence[i]) && before[i] != sequence[i]) fits = false;
    }
    if (!fits) continue;
    const std::string& word = sequence[place];
    append(result, stands_for_itself(word) ? named({word}) : placeholder(word, line, typed));
  }
  return result;
}

Completions values_of(const CLI::Option& option, const Line& line, const std::vector<std::string>& before,
                      std::string typed) {
  std::string type = option.get_type_name();
  constexpr std::string_view kSeveral = ",...";  // values with commas in between; the last is being typed
  std::string in_front;
  if (type.ends_with(kSeveral)) {
    type.resize(type.size() - kSeveral.size());
    const std::size_t comma = typed.rfind(',');
    if (comma != std::string::npos) {
      in_front = typed.substr(0, comma + 1);
      typed.erase(0, comma + 1);
    }
  }
  Completions result = values_of_type(type, line, before, typed);
  for (Completion& one : result) one.word = in_front + one.word;
  return result;
}

const CLI::Option* find_option(const CLI::App& verb, const std::string& name) {
  for (const CLI::Option* option : verb.get_options()) {
    if (option->nonpositional() && option->check_name(name)) return option;
  }
  return nullptr;
}

std::vector<const CLI::App*> verbs_below(const CLI::App& verb) {
  return verb.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); });
}

Line read_line(const CLI::App& app, const std::vector<std::string>& words) {
  Line line;
  line.verb = &app;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (line.option != nullptr) {
      if (line.option->check_name("--plugin")) line.plugins.emplace_back(word);
      line.option = nullptr;
    } else if (word == "--" && !line.only_arguments) {
      line.only_arguments = true;
    } else if (!line.only_arguments && word.starts_with("-") && word.size() > 1) {
      const CLI::Option* option = find_option(*line.verb, word.substr(0, word.find('=')));
      const bool takes_value = option != nullptr && option->get_items_expected_max() > 0;
      if (takes_value && word.find('=') == std::string::npos) line.option = option;
    } else {
      const auto below = verbs_below(*line.verb);
      const auto found = std::ranges::find_if(below, [&](const CLI::App* verb) { return verb->check_name(word); });
      if (found != below.end() && line.arguments.empty()) {
        line.verb = *found;
      } else {
        line.arguments.push_back(word);
      }
    }
  }
  return line;
}

Completions options_of(const CLI::App& verb) {
  Completions result;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) result.push_back({"--" + name, option->get_description()});
  }
  return result;
}

Completions arguments(const Line& line, const std::string& typed) {
  Completions result;
  if (line.arguments.empty()) {
    for (const CLI::App* verb : verbs_below(*line.verb)) {
      result.push_back({verb->get_name(), verb->get_description()});
      for (const std::string& alias : verb->get_aliases()) result.push_back({alias, verb->get_description()});
    }
  }
  std::size_t place = line.arguments.size();
  for (const CLI::Option* argument : line.verb->get_options()) {
    if (!argument->get_positional()) continue;
    const auto most = static_cast<std::size_t>(std::max(1, argument->get_items_expected_max()));
    if (place < most) {
      const std::vector<std::string> before(line.arguments.end() - static_cast<std::ptrdiff_t>(place),
                                            line.arguments.end());
      append(result, values_of(*argument, line, before, typed));
      break;
    }
    place -= most;
  }
  return result;
}

// `gpunn help` takes verbs, too.
Completions help_arguments(const CLI::App& app, Line line, const std::string& typed) {
  Completions result = arguments(line, typed);
  line.verb = &app;
  for (const std::string& word : std::exchange(line.arguments, {})) {
    const auto below = verbs_below(*line.verb);
    const auto found = std::ranges::find_if(below, [&](const CLI::App* verb) { return verb->check_name(word); });
    if (found == below.end()) return result;
    line.verb = *found;
  }
  for (const CLI::App* verb : verbs_below(*line.verb)) result.push_back({verb->get_name(), verb->get_description()});
  return result;
}

}  // namespace

std::vector<Completion> complete(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string typed = words.empty() ? std::string() : words.back();
  const Line line = read_line(app, words);
  Completions found;
  const std::size_t equals = typed.find('=');
  if (line.option != nullptr) {
    found = values_of(*line.option, line, {}, typed);
  } else if (!line.only_arguments && typed.starts_with("--") && equals != std::string::npos) {
    if (const CLI::Option* option = find_option(*line.verb, typed.substr(0, equals))) {
      Line at = line;
      at.option = option;
      found = values_of(*option, at, {}, typed.substr(equals + 1));
      for (Completion& one : found) one.word = typed.substr(0, equals + 1) + one.word;
    }
  } else if (!line.only_arguments && typed.starts_with("-")) {
    found = options_of(*line.verb);
  } else {
    found = line.verb->get_name() == "help" ? help_arguments(app, line, typed) : arguments(line, typed);
  }
  std::erase_if(found, [&](const Completion& one) { return !one.word.starts_with(typed); });
  return found;
}

}  // namespace gpunn::cli
