// Sections of an experiment that have a type, such as `optimizer`. Each type declares its keys, and the section's keys
// are put together from them. A section's struct has a std::variant `kind` with a struct for each type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "config/key.hpp"

namespace gpunn::config {

template <class Config>
struct KindOf {
  std::string name;                 // in an experiment
  std::vector<KeyOf<Config>> keys;  // in the order of the documentation
  std::function<void(Config&)> select;
  std::function<bool(const Config&)> selected;
};

// Makes the key of a kind a key of its section. If the section is of another kind, the key sets nothing and has the
// kind's default.
template <class Alternative, class Config, class Owner>
KeyOf<Config> in_kind(KeyOf<Owner> key) {
  if constexpr (std::is_same_v<Owner, Config>) {
    return key;
  } else {
    KeyOf<Config> result{static_cast<const KeyDescription&>(key), {}, {}};
    result.set = [set = key.set](Config& config, const Value& value) {
      if (Alternative* kind = std::get_if<Alternative>(&config.kind)) set(*kind, value);
    };
    result.get = [get = key.get](const Config& config) {
      const Alternative* kind = std::get_if<Alternative>(&config.kind);
      return get(kind != nullptr ? *kind : Alternative());
    };
    return result;
  }
}

// `keys` are of Alternative, or of Config where all kinds that have the key keep it in one place.
template <class Alternative, class Config, class... Keys>
KindOf<Config> make_kind(const std::string& name, Keys... keys) {
  KindOf<Config> kind;
  kind.name = name;
  (kind.keys.push_back(in_kind<Alternative, Config>(std::move(keys))), ...);
  kind.select = [](Config& config) { config.kind = Alternative(); };
  kind.selected = [](const Config& config) { return std::holds_alternative<Alternative>(config.kind); };
  return kind;
}

// Makes `key`, which some kinds have, stand for one more kind's key of the same name. It may be absent if it may be for
// one of the kinds.
template <class Config>
void share_key(KeyOf<Config>& key, const KeyOf<Config>& other, const KindOf<Config>& kind) {
  key.kinds.push_back(kind.name);
  key.optional = key.optional || other.optional;
  key.set = [set = key.set, other_set = other.set, selected = kind.selected](Config& config, const Value& value) {
    selected(config) ? other_set(config, value) : set(config, value);
  };
  key.get = [get = key.get, other_get = other.get, selected = kind.selected](const Config& config) {
    return selected(config) ? other_get(config) : get(config);
  };
}

// The keys of all kinds. One that several kinds have is there once, described as the first of them does. New keys stand
// in front of the shared key that comes next in their kind, else at the end.
template <class Config>
std::vector<KeyOf<Config>> keys_of_kinds(const std::vector<KindOf<Config>>& kinds) {
  std::vector<KeyOf<Config>> all;
  for (const KindOf<Config>& kind : kinds) {
    auto place = static_cast<std::ptrdiff_t>(all.size());
    for (auto key = kind.keys.rbegin(); key != kind.keys.rend(); ++key) {
      const auto found = std::ranges::find(all, key->path, &KeyOf<Config>::path);
      if (found != all.end()) {
        share_key(*found, *key, kind);
        place = found - all.begin();
      } else {
        all.insert(all.begin() + place, *key)->kinds = {kind.name};
      }
    }
  }
  for (KeyOf<Config>& key : all) {
    if (key.kinds.size() == kinds.size()) key.kinds.clear();
  }
  return all;
}

// The key that names the kind of a section.
template <class Config>
KeyOf<Config> kind_key(const std::string& name, std::vector<KindOf<Config>> kinds, const std::string& help) {
  KeyOf<Config> key;
  key.path = name;
  key.type = ValueType::choice;
  key.help = help;
  for (const KindOf<Config>& kind : kinds) key.choices.push_back(kind.name);
  key.get = [kinds](const Config& config) -> Value {
    const auto found = std::ranges::find_if(kinds, [&](const KindOf<Config>& kind) { return kind.selected(config); });
    return found == kinds.end() ? std::string() : found->name;
  };
  key.set = [kinds = std::move(kinds)](Config& config, const Value& value) {
    std::ranges::find(kinds, std::get<std::string>(value), &KindOf<Config>::name)->select(config);
  };
  return key;
}

// The kinds of rows that hold one each, as a section's table has them.
template <class Rows>
auto kinds_of(const Rows& rows) {
  std::vector<decltype(rows.front().kind)> kinds;
  for (const auto& row : rows) kinds.push_back(row.kind);
  return kinds;
}

// The row of the kind that a section is of.
template <class Rows, class Config>
const auto& row_of(const Rows& rows, const Config& config) {
  return *std::ranges::find_if(rows, [&](const auto& row) { return row.kind.selected(config); });
}

}  // namespace gpunn::config
