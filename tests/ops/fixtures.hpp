// Reads the fixtures that PyTorch wrote.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/attribute_structs.hpp"
#include "graph/attributes.hpp"

namespace gpunn::testing {

using nlohmann::json;

// A file of tests/fixtures/.
inline json fixture(const std::string& name) {
  std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/" + name);
  return json::parse(file);
}

// The op's attribute struct out of JSON, by the names of its members. Throws where it has no member of a name.
inline graph::Attributes attributes_of(int32_t op, const json& attrs) {
  if (attrs.empty()) return {};
  // As large as any struct; what is behind an op's own members is 0.
  struct AnyAttributes {
    uint32_t struct_size;
    std::byte members[508];
  } any{};
  auto* const bytes = reinterpret_cast<std::byte*>(&any);
  const AttributeStruct& members = attribute_structs().at(struct_of_op(op));
  for (const auto& [name, value] : attrs.items()) {
    const auto member = std::ranges::find(members, name, &AttributeMember::name);
    if (member == members.end()) throw std::runtime_error(struct_of_op(op) + " has no member '" + name + "'");
    const std::vector<double> numbers =
        value.is_array() ? value.get<std::vector<double>>() : std::vector<double>{value.get<double>()};
    for (std::size_t i = 0; i < std::min(numbers.size(), member->count); ++i) {
      std::byte* const at = bytes + member->offset + i * size_of_type(member->type);
      const auto write = [at](auto number) { std::memcpy(at, &number, sizeof(number)); };
      if (member->type == "float") write(static_cast<float>(numbers[i]));
      if (member->type == "double") write(numbers[i]);
      if (member->type == "int32_t" || member->type == "uint32_t") write(static_cast<int32_t>(numbers[i]));
      if (member->type == "int64_t" || member->type == "uint64_t") write(static_cast<int64_t>(numbers[i]));
    }
  }
  return graph::Attributes::of(any);
}

}  // namespace gpunn::testing
