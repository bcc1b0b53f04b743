// Rows of keys, a line or two each: a key's name, the member that it is, its range, its help.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "config/key.hpp"

namespace gpunn::config {

inline constexpr double kMostEpochs = 1'000'000;
inline constexpr double kMostSteps = 1e12;
inline constexpr double kLargestRate = 1000;

// Ties a key to a member: V is the alternative of Value that carries it.
template <class V, class Owner, class Member>
KeyOf<Owner> tie(const std::string& name, ValueType type, Member Owner::*member, const std::string& help) {
  KeyOf<Owner> key;
  key.path = name;
  key.type = type;
  key.help = help;
  key.set = [member](Owner& owner, const Value& value) { owner.*member = static_cast<Member>(std::get<V>(value)); };
  key.get = [member](const Owner& owner) -> Value {
    if constexpr (std::is_same_v<Member, std::filesystem::path>) {
      return (owner.*member).string();
    } else {
      return static_cast<V>(owner.*member);
    }
  };
  return key;
}

template <class Owner>
KeyOf<Owner> boolean(const std::string& name, bool Owner::*member, const std::string& help) {
  return tie<bool>(name, ValueType::boolean, member, help);
}

template <class Owner, class Member>
KeyOf<Owner> integer(const std::string& name, Member Owner::*member, Range range, const std::string& help) {
  KeyOf<Owner> key = tie<int64_t>(name, ValueType::integer, member, help);
  key.range = range;
  return key;
}

template <class Owner>
KeyOf<Owner> number(const std::string& name, double Owner::*member, Range range, const std::string& help) {
  KeyOf<Owner> key = tie<double>(name, ValueType::number, member, help);
  key.range = range;
  return key;
}

template <class Owner>
KeyOf<Owner> text(const std::string& name, std::string Owner::*member, const std::string& help) {
  return tie<std::string>(name, ValueType::text, member, help);
}

// One of some words kept as text.
template <class Owner>
KeyOf<Owner> word(const std::string& name, std::string Owner::*member, const std::vector<std::string>& choices,
                  const std::string& help) {
  KeyOf<Owner> key = tie<std::string>(name, ValueType::choice, member, help);
  key.choices = choices;
  return key;
}

// One of some words kept as an enum: its names in the order of its values.
template <class Owner, class Member>
KeyOf<Owner> choice(const std::string& name, Member Owner::*member, const std::vector<std::string>& choices,
                    const std::string& help) {
  KeyOf<Owner> key;
  key.path = name;
  key.type = ValueType::choice;
  key.help = help;
  key.choices = choices;
  key.set = [member, names = key.choices](Owner& owner, const Value& value) {
    const auto place = std::find(names.begin(), names.end(), std::get<std::string>(value)) - names.begin();
    owner.*member = static_cast<Member>(place);
  };
  key.get = [member, names = key.choices](const Owner& owner) -> Value {
    return names.at(static_cast<std::size_t>(owner.*member));
  };
  return key;
}

// A folder or file. `runs` alone is not resolved against the experiment's folder.
template <class Owner>
KeyOf<Owner> path(const std::string& name, std::filesystem::path Owner::*member, const std::string& help) {
  return tie<std::string>(name, ValueType::path, member, help);
}

template <class Owner>
KeyOf<Owner> paths(const std::string& name, std::vector<std::filesystem::path> Owner::*member,
                   const std::string& help) {
  KeyOf<Owner> key;
  key.path = name;
  key.type = ValueType::paths;
  key.help = help;
  key.set = [member](Owner& owner, const Value& value) {
    const auto& files = std::get<std::vector<std::string>>(value);
    (owner.*member).assign(files.begin(), files.end());
  };
  key.get = [member](const Owner& owner) -> Value {
    std::vector<std::string> files;
    for (const std::filesystem::path& file : owner.*member) files.push_back(file.string());
    return files;
  };
  return key;
}

template <class Owner>
KeyOf<Owner> numbers(const std::string& name, std::vector<double> Owner::*member, Range range,
                     const std::string& help) {
  KeyOf<Owner> key = tie<std::vector<double>>(name, ValueType::numbers, member, help);
  key.range = range;
  return key;
}

// Rows and columns, or one number for both. Anything but whole numbers becomes `refused`, which a check then reports.
template <class Owner>
KeyOf<Owner> pixels(const std::string& name, std::vector<int64_t> Owner::*member, Range range, int64_t refused,
                    const std::string& help) {
  KeyOf<Owner> key;
  key.path = name;
  key.type = ValueType::numbers;
  key.help = help;
  key.range = range;
  key.set = [member, refused](Owner& owner, const Value& value) {
    std::vector<int64_t>& sizes = owner.*member;
    sizes.clear();
    for (const double size : std::get<std::vector<double>>(value)) {
      sizes.push_back(size == std::floor(size) ? static_cast<int64_t>(size) : refused);
    }
    if (sizes.size() == 1) sizes.push_back(sizes.front());
  };
  key.get = [member](const Owner& owner) -> Value {
    return std::vector<double>((owner.*member).begin(), (owner.*member).end());
  };
  key.optional = true;
  return key;
}

template <class Owner>
KeyOf<Owner> texts(const std::string& name, std::vector<std::string> Owner::*member, const std::string& help) {
  return tie<std::vector<std::string>>(name, ValueType::texts, member, help);
}

template <class Owner>
KeyOf<Owner> optional(KeyOf<Owner> key) {
  key.optional = true;
  return key;
}

template <class Owner>
KeyOf<Owner> required(KeyOf<Owner> key) {
  key.required = true;
  return key;
}

template <class Owner>
KeyOf<Owner> only(const std::vector<std::string>& kinds, KeyOf<Owner> key) {
  key.kinds = kinds;
  return key;
}

template <class Owner>
KeyOf<Owner> formerly(const std::string& name, KeyOf<Owner> key) {
  key.formerly = name;
  return key;
}

}  // namespace gpunn::config
