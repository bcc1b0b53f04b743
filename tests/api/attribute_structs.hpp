// The attribute structs as api/include/gpunn/op_attrs.h declares them: their members with types and places.
#pragma once

#include <gpunn/op_signature.hpp>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpunn::testing {

struct AttributeMember {
  std::string name;
  std::string type;       // "float"
  std::size_t count = 1;  // of an array
  std::size_t offset = 0;
  bool operator==(const AttributeMember&) const = default;
};

using AttributeStruct = std::vector<AttributeMember>;

inline std::size_t size_of_type(const std::string& type) {
  static const std::map<std::string, std::size_t> sizes{{"uint32_t", 4}, {"int32_t", 4}, {"float", 4},
                                                        {"uint64_t", 8}, {"int64_t", 8}, {"double", 8}};
  const auto found = sizes.find(type);
  if (found == sizes.end()) throw std::runtime_error("attributes of type " + type + " have no known size");
  return found->second;
}

// Bytes, with the padding that aligns an array of them.
inline std::size_t size_of_struct(const AttributeStruct& members) {
  std::size_t end = 0, alignment = 1;
  for (const AttributeMember& member : members) {
    const std::size_t size = size_of_type(member.type);
    end = member.offset + member.count * size;
    alignment = std::max(alignment, size);
  }
  return (end + alignment - 1) / alignment * alignment;
}

// By name; the op's own struct is at struct_of_op.
inline const std::map<std::string, AttributeStruct>& attribute_structs() {
  static const std::map<std::string, AttributeStruct> structs = [] {
    std::map<std::string, AttributeStruct> result{{"gpunn_no_attrs", {{"struct_size", "uint32_t", 1, 0}}}};
    std::ifstream file(std::string(GPUNN_SOURCE_DIR) + "/api/include/gpunn/op_attrs.h");
    const std::regex begin(R"(typedef struct (\w+) \{)"), member(R"(\s+(\w+) (\w+)(?:\[(\d+)\])?;.*)");
    std::smatch match;
    AttributeStruct* current = nullptr;
    for (std::string line; std::getline(file, line);) {
      if (std::regex_match(line, match, begin)) {
        current = &result[match[1]];
      } else if (line.starts_with("}")) {
        current = nullptr;
      } else if (current != nullptr && std::regex_match(line, match, member)) {
        AttributeMember next{match[2], match[1], match[3].matched ? std::stoul(match[3]) : 1, 0};
        const std::size_t size = size_of_type(next.type);
        if (!current->empty()) {
          const AttributeMember& last = current->back();
          next.offset = (last.offset + last.count * size_of_type(last.type) + size - 1) / size * size;
        }
        current->push_back(std::move(next));
      }
    }
    return result;
  }();
  return structs;
}

inline const std::string& struct_of_op(int32_t op) {
  static const std::map<int32_t, std::string> names{
#define GPUNN_OP(name, id, attributes, signature) {id, #attributes},
#include <gpunn/op_list.inc>
#undef GPUNN_OP
  };
  return names.at(op);
}

}  // namespace gpunn::testing
