// The verb `gpunn help`: a verb's --help, and the lists of keys, layers and ops that error messages point to.
#include <gpunn/ops.hpp>
#include <gpunn/vocabulary.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/parser/help_layout.hpp"
#include "cli/parser/suggest.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"

namespace gpunn::cli {

namespace {

// Texts of the vocabulary are Markdown.
std::string plain(std::string text) {
  std::erase(text, '`');
  return text;
}

std::string about(const KeyInfo& key) {
  const std::string fallback = key.fallback == "required" ? "; required"
                               : key.fallback == "none"   ? ""
                                                          : "; default: " + key.fallback;
  return plain(key.help + " (" + key.value + fallback + ")");
}

std::string section_of(const std::string& path) {
  const std::size_t dot = path.find('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

// The keys of a section, or a single key; all keys if `wanted` is empty. Empty if there is none.
std::string keys_help(const std::string& wanted) {
  std::string text, section = "?";
  HelpRows rows;
  const auto flush = [&] {
    if (!rows.empty()) text += (text.empty() ? "" : "\n") + two_columns(std::exchange(rows, {}), text_width());
  };
  for (const KeyInfo& key : experiment_keys()) {
    if (!wanted.empty() && wanted != key.path && wanted != section_of(key.path)) continue;
    if (section_of(key.path) != section) flush();
    section = section_of(key.path);
    rows.emplace_back(key.path, about(key));
  }
  flush();
  return text;
}

std::string layers_help(const std::string& wanted) {
  HelpRows rows;
  for (const LayerInfo& layer : layer_types()) {
    if (!wanted.empty() && wanted != layer.name) continue;
    std::string keys;
    for (const KeyInfo& key : layer.keys) keys += (keys.empty() ? " Parameters: " : ", ") + key.path;
    rows.emplace_back(layer.name, plain(layer.help + (wanted.empty() && !keys.empty() ? keys + "." : "")));
    if (wanted.empty()) continue;
    for (const KeyInfo& key : layer.keys) rows.emplace_back("  " + key.path, about(key));
  }
  return rows.empty() ? std::string() : two_columns(rows, text_width());
}

std::string op_title(std::string name) {
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return name;
}

// What an attribute means, and what it is where it is not given.
std::string about(const eager::AttributeInfo& attribute) {
  std::string text = attribute.help;
  for (std::size_t i = 0; i < attribute.choices.size(); ++i) {
    text += (i == 0 ? "; one of " : ", ") + attribute.choices[i];
  }
  if (!attribute.same_as.empty()) return text + " (default: as " + attribute.same_as + ")";
  if (attribute.kind == eager::AttributeKind::axes) return text + " (default: all)";
  if (attribute.kind == eager::AttributeKind::elements) return text;
  if (!attribute.fallback) return text + " (required)";
  return text + " (default: " + std::visit([](const auto& value) { return Json(value).dump(); }, *attribute.fallback) +
         ")";
}

// All ops, or one with its signature and attributes. Empty if there is none of that name.
std::string ops_help(const std::string& wanted) {
  HelpRows rows;
  for (const eager::OpDescription& op : eager::catalogue()) {
    if (!wanted.empty() && op_title(wanted) != op_title(op.name)) continue;
    rows.emplace_back(op_title(op.name), op.summary);
    if (wanted.empty()) continue;
    rows.emplace_back("  takes", op.signature);
    if (!op.formula.empty()) rows.emplace_back("  formula", op.formula);
    for (const eager::AttributeInfo& one : op.attributes) rows.emplace_back("  " + one.name, about(one));
  }
  return rows.empty() ? std::string() : two_columns(rows, text_width());
}

// The text of `gpunn help WORD...`; empty if nothing has that name.
std::string help_of(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string& first = words.front();
  const std::string second = words.size() > 1 ? words[1] : std::string();
  const CLI::App& verb = verb_of(app, words);
  if (&verb != &app) return verb.help(full_name(*verb.get_parent()));
  if (first == "keys") return keys_help(second);
  if (first == "layers") return layers_help(second);
  if (first == "ops") return ops_help(second);
  const std::string keys = keys_help(first);
  return keys.empty() ? layers_help(first) : keys;
}

[[noreturn]] void no_help(const CLI::App& app, const std::vector<std::string>& words) {
  const std::string& word = words.back();
  const std::string kind = words.size() > 1 ? words.front() : std::string();
  std::vector<std::string> known;
  if (kind == "ops") {
    for (const eager::OpDescription& op : eager::catalogue()) known.push_back(op_title(op.name));
    throw Error("there is no op '" + word + "'" + did_you_mean_or_list(op_title(word), known), ExitCode::usage);
  }
  if (kind != "keys" && kind != "layers") {
    known = {"keys", "layers", "ops"};
    for (const CLI::App* verb : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
      known.push_back(verb->get_name());
      known.insert(known.end(), verb->get_aliases().begin(), verb->get_aliases().end());
    }
  }
  for (const LayerInfo& layer : layer_types()) {
    if (kind != "keys") known.push_back(layer.name);
  }
  for (const KeyInfo& key : experiment_keys()) {
    if (kind != "layers") known.push_back(key.path);
  }
  std::string hint = advice(word, known);
  if (hint.empty()) {
    const std::vector<std::string> keys = nearest_keys("", word);
    hint =
        keys.empty() ? "; 'gpunn help' lists the verbs, and what else has help" : "; did you mean '" + keys[0] + "'?";
  }
  throw Error("there is no help on '" + word + "'" + hint, ExitCode::usage);
}

}  // namespace

void add_help(CommandLine& line) {
  auto words = std::make_shared<std::vector<std::string>>();
  Verb verb = line.program.add_verb("help", "Show the help of a verb, or list keys, layers and ops",
                                    {"gpunn help run", "gpunn help data inspect", "gpunn help keys optimizer",
                                     "gpunn help layers conv2d", "gpunn help ops conv2d"});
  verb.add_option("what", *words,
                  "A verb; or keys, of a section or one key; or layers, or one layer; or ops, or one op")
      .type_name("VERB... | keys SECTION | layers LAYER | ops OP");
  verb.add_flag("--json", line.json, "ops: print the signatures and attributes of all as JSON");
  verb.callback([&line, words] {
    line.action = [&line, words] {
      if (line.json) {
        if (*words != std::vector<std::string>{"ops"}) throw Error("--json is for 'gpunn help ops'", ExitCode::usage);
        Json ops = Json::array();
        for (const eager::OpDescription& op : eager::catalogue()) ops.push_back(to_json(op));
        print_json(ops);
        return ExitCode::done;
      }
      line.app->clear();  // else the program's help is that of the verb that was given, this one
      const std::string text = words->empty() ? line.app->help() : help_of(*line.app, *words);
      if (text.empty()) no_help(*line.app, *words);
      put("{}", text);
      return ExitCode::done;
    };
  });
}

}  // namespace gpunn::cli
