// Rows of the schema, a line or two each: a key's path, the member of Experiment that it is, its range, its help.
#pragma once

#include <gpunn/experiment.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "config/schema.hpp"

namespace gpunn::config {

inline constexpr double kMostEpochs = 1'000'000;
inline constexpr double kMostSteps = 1e12;
inline constexpr double kLargestRate = 1000;

// How to reach a member of an Experiment, constant or not.
template <class T>
auto in(T Experiment::*member) {
  return [member](auto& e) -> auto& { return e.*member; };
}
template <class S, class T>
auto in(S Experiment::*section, T S::*member) {
  return [ section, member ](auto& e) -> auto& { return e.*section.*member; };
}
template <class S, class T>
auto in(std::optional<S> Experiment::*section, T S::*member) {
  return [ section, member ](auto& e) -> auto& { return (e.*section).value().*member; };
}

// Ties a key to a member: V is the alternative of Value that carries it.
template <class V, class Access>
Key tie(std::string path, ValueType type, Access access, std::string help) {
  Key key;
  key.path = std::move(path);
  key.type = type;
  key.help = std::move(help);
  key.set = [access](Experiment& e, const Value& value) {
    auto& member = access(e);
    using Member = std::remove_cvref_t<decltype(member)>;
    member = static_cast<Member>(std::get<V>(value));
  };
  key.get = [access](const Experiment& e) -> Value {
    const auto& member = access(e);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, std::filesystem::path>) {
      return member.string();
    } else {
      return static_cast<V>(member);
    }
  };
  return key;
}

template <class Access>
Key boolean(std::string path, Access access, std::string help) {
  return tie<bool>(std::move(path), ValueType::boolean, access, std::move(help));
}

template <class Access>
Key integer(std::string path, Access access, Range range, std::string help) {
  Key key = tie<int64_t>(std::move(path), ValueType::integer, access, std::move(help));
  key.range = range;
  return key;
}

template <class Access>
Key number(std::string path, Access access, Range range, std::string help) {
  Key key = tie<double>(std::move(path), ValueType::number, access, std::move(help));
  key.range = range;
  return key;
}

template <class Access>
Key text(std::string path, Access access, std::string help) {
  return tie<std::string>(std::move(path), ValueType::text, access, std::move(help));
}

// One of some words kept as text.
template <class Access>
Key word(std::string path, Access access, std::vector<std::string> choices, std::string help) {
  Key key = tie<std::string>(std::move(path), ValueType::choice, access, std::move(help));
  key.choices = std::move(choices);
  return key;
}

// One of some words kept as an enum: its names in the order of its values.
template <class Access>
Key choice(std::string path, Access access, std::vector<std::string> choices, std::string help) {
  Key key;
  key.path = std::move(path);
  key.type = ValueType::choice;
  key.help = std::move(help);
  key.choices = std::move(choices);
  key.set = [access, names = key.choices](Experiment& e, const Value& value) {
    auto& member = access(e);
    const auto place = std::find(names.begin(), names.end(), std::get<std::string>(value)) - names.begin();
    member = static_cast<std::remove_cvref_t<decltype(member)>>(place);
  };
  key.get = [access, names = key.choices](const Experiment& e) -> Value {
    return names.at(static_cast<std::size_t>(access(e)));
  };
  return key;
}

// A folder or file. `runs` alone is not resolved against the experiment's folder.
template <class Access>
Key path(std::string key_path, Access access, std::string help) {
  return tie<std::string>(std::move(key_path), ValueType::path, access, std::move(help));
}

template <class Access>
Key numbers(std::string path, Access access, Range range, std::string help) {
  Key key = tie<std::vector<double>>(std::move(path), ValueType::numbers, access, std::move(help));
  key.range = range;
  return key;
}

template <class Access>
Key texts(std::string path, Access access, std::string help) {
  return tie<std::vector<std::string>>(std::move(path), ValueType::texts, access, std::move(help));
}

inline Key optional(Key key) {
  key.optional = true;
  return key;
}

inline Key required(Key key) {
  key.required = true;
  return key;
}

inline Key only(std::vector<std::string> kinds, Key key) {
  key.kinds = std::move(kinds);
  return key;
}

// The rows of `augmentation` and of `schedule`, in the order of the documentation.
std::vector<Key> augmentation_keys();
std::vector<Key> schedule_keys();

}  // namespace gpunn::config
