#pragma once

#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "graph/attributes.hpp"

namespace gpunn::graph {

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

// The memory of a value. All kinds but the arena keep their content from step to step and are bound by name.
enum class Storage { arena, parameters, gradients, optimizer, state, data };
std::string_view name_of(Storage storage);

// A tensor without gaps. A view shares the bytes of another value from an offset on, with its own type.
struct Value {
  std::string name;
  TensorType type;
  Storage storage = Storage::arena;
  ValueId view_of = kNoValue;
  int64_t view_offset = 0;  // bytes
  bool constant = false;    // of a root outside the arena: no program that is run any more changes its bytes
};

// One op. An op that works in place lists the same value as input and as output.
struct Node {
  int32_t op = 0;
  std::string name;  // of the layer, for the user
  Attributes attrs;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

// The properties that the choice of a node's kernel depends on.
struct OpSignature {
  int32_t op = 0;
  Attributes attrs;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;
};

// A program: nodes in an order in which they can run.
class Graph {
 public:
  // A value that no node makes: a parameter, a state, resident data.
  ValueId add_value(std::string name, TensorType type, Storage storage);
  // The same bytes as `of`, from `offset` bytes on.
  ValueId add_view(std::string name, ValueId of, TensorType type, int64_t offset = 0);
  // Appends an op on new values of the inferred types. Throws Error naming the op, the layer and the shapes that clash.
  std::vector<ValueId> add(int32_t op, std::string name, Attributes attrs, std::vector<ValueId> inputs);
  // Appends an op with one output and returns it.
  ValueId add1(int32_t op, std::string name, Attributes attrs, std::vector<ValueId> inputs);
  // Appends an op that writes given values (in place, or a view of a flat array).
  void add_into(int32_t op, std::string name, Attributes attrs, std::vector<ValueId> inputs,
                std::vector<ValueId> outputs);

  const Value& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  Value& value(ValueId id) { return values_[static_cast<std::size_t>(id)]; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  std::vector<Node>& nodes() { return nodes_; }

  // The value whose bytes `id` shares, itself if it is no view.
  ValueId root(ValueId id) const;
  // Offset in bytes in root(id).
  int64_t root_offset(ValueId id) const;
  OpSignature signature(const Node& node) const;
  // Whether the bytes of a value, a view's root's, never change any more.
  bool is_constant(ValueId id) const { return value(root(id)).constant; }

 private:
  std::vector<Value> values_;
  std::vector<Node> nodes_;
};

}  // namespace gpunn::graph
