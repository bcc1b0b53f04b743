// Finds nodes that belong together in a file, from the last to the first, and puts one in their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "interchange/onnx/file_model.hpp"

namespace gpunn::interchange {

// The domain of the nodes that stand for several of ONNX's.
inline constexpr const char* kFusedDomain = "gpunn";

using Integers = std::vector<int64_t>;

// The nodes are others than those looked for.
struct Mismatch {};
inline void match(bool holds) {
  if (!holds) throw Mismatch();
}

// Walks from a value to what it is made of. Its functions throw Mismatch where that is something else.
class NodeWalk {
 public:
  explicit NodeWalk(const FileModel& model);

  const FileNode* producer(const std::string& value) const;  // of ONNX's own; nullptr: there is none
  // The node of this type whose first output the value is.
  const FileNode& node(const std::string& value, const char* op, std::size_t inputs);
  // What is reshaped to this shape, cast to this type, or transposed in this order.
  const std::string& reshaped(const std::string& value, const Integers& shape);
  const std::string& cast(const std::string& value, Element to);
  const std::string& transposed(const std::string& value, const Integers& order);
  // The numbers from `begin` to `end` of the last of three dimensions.
  const std::string& sliced(const std::string& value, int64_t begin, int64_t end);

  const Constant& constant(const std::string& value) const;
  Integers integers(const std::string& value) const;  // up to 8
  int64_t integer(const std::string& value) const;
  float number(const std::string& value) const;

  static int64_t attribute(const FileNode& node, const char* name, int64_t fallback);
  static bool has_attribute(const FileNode& node, const char* name);
  static Integers list(const FileNode& node, const char* name);  // empty: the node has no such list

  // The nodes that were walked over.
  std::set<const FileNode*>& passed() { return passed_; }

 private:
  const FileModel& model_;
  std::map<std::string, const FileNode*> producers_;
  std::set<const FileNode*> passed_;
};

// A node of kFusedDomain.
FileNode fused_node(const std::string& name, const char* op, std::vector<std::string> inputs,
                    const std::string& output);
void set_attribute(FileNode& node, const char* name, int64_t value);
void set_attribute(FileNode& node, const char* name, float value);

// Removes those of these nodes that nothing reads.
void remove_unread(FileModel& model, std::set<const FileNode*> nodes);

}  // namespace gpunn::interchange
