#include "experiment/unknown_key.hpp"

#include <gpunn/vocabulary.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <vector>

#include "common/text.hpp"
#include "config/values.hpp"
#include "experiment/schema.hpp"

namespace gpunn {

namespace {

constexpr std::size_t kMostKeysNamed = 3;

struct KeyName {
  std::string name;  // what a user may write
  std::string path;  // what is right where they wrote it
};

// All keys and sections, those of the section first: of equally good ones they win.
std::vector<KeyName> names_seen_from(const std::string& section) {
  std::vector<KeyName> names;
  for (const std::string& name : config::keys_of(section)) names.push_back({name, name});
  for (const config::Key& key : config::schema()) {
    if (key.section() != section) names.push_back({key.name(), key.path});
  }
  if (section.empty()) return names;
  for (const std::string& name : config::sections()) names.push_back({name, name});
  names.push_back({"model", "model"});
  return names;
}

}  // namespace

std::vector<std::string> nearest_keys(const std::string& section, const std::string& name) {
  const std::vector<KeyName> known = names_seen_from(section);
  std::vector<std::string> names;
  for (const KeyName& one : known) {
    if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
  }
  std::vector<std::string> paths;
  for (const std::string& near : best_matches(name, names)) {
    for (const KeyName& one : known) {
      if (one.name != near || paths.size() == kMostKeysNamed) continue;
      paths.push_back(one.path);
      if (one.path == one.name) break;  // here, or at the top: no need to look elsewhere
    }
  }
  return paths;
}

namespace config {

namespace {

constexpr std::size_t kMostKeysListed = 16;

bool is_at_top(const std::string& path) { return path.find('.') == std::string::npos; }

std::string command_for(const std::string& section) {
  return "'gpunn help keys" + (section.empty() ? "" : " " + section) + "'";
}

}  // namespace

std::string key_advice(const std::string& section, const std::string& name, const std::string& value) {
  if (const std::string_view about = explanation(name); !about.empty()) {
    // 16 asks for half precision as a value of `precision`, but not as a number of devices.
    const std::string_view about_value = number_of(value) ? std::string_view() : explanation(value);
    return ". " + std::string(about_value.empty() ? about : about_value);
  }
  const std::vector<std::string> near = nearest_keys(section, name);
  const std::vector<std::string> here = keys_of(section);
  std::vector<std::string> named;
  for (const std::string& path : near) {
    const bool elsewhere =
        !section.empty() && is_at_top(path) && std::find(here.begin(), here.end(), path) == here.end();
    named.push_back(in_quotes(path) + (elsewhere ? " at the top of the file, outside " + in_quotes(section) : ""));
  }
  if (!named.empty()) return "; did you mean " + join(named, " or ") + "?";
  if (const std::string_view about = explanation(value); !about.empty() && !number_of(value))
    return ". " + std::string(about);
  return here.size() <= kMostKeysListed ? "; known: " + join(here, ", ") : "; " + command_for(section) + " lists them";
}

std::string keys_text(const std::string& section) {
  const std::vector<std::string> keys = keys_of(section);
  return keys.size() <= kMostKeysListed ? join(keys, ", ") : "keys, which " + command_for(section) + " lists";
}

}  // namespace config

}  // namespace gpunn
