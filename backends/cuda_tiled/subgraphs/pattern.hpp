// Finds ops of a program by the values that they read and write. All matchers of fused subgraphs use it.
#pragma once

#include <gpunn/subgraph.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace gpunn::cuda_tiled {

// The op as text: "TANH (op 7)".
std::string op_text(const plugin::ProgramDesc& desc, std::size_t op);

// The ops [first, first + limit) of a program. Some of them are taken for a fused subgraph.
class Pattern {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  Pattern(const plugin::ProgramDesc& desc, std::size_t first, std::size_t limit);

  const plugin::ProgramDesc& desc() const { return desc_; }
  std::size_t begin() const { return first_; }
  std::size_t end() const { return first_ + taken_.size(); }
  int32_t op(std::size_t i) const { return desc_.op(i).op(); }
  int32_t input(std::size_t op, std::size_t i) const { return desc_.inputs(op)[i]; }
  int32_t output(std::size_t op, std::size_t i = 0) const { return desc_.outputs(op)[i]; }

  // Whether two ids have the same memory and number of elements: a view that flattens is the same value.
  bool same(int32_t a, int32_t b) const;
  // The first op that is not taken, is one of `ops` and reads `values`; -1 matches any value.
  std::size_t find(std::initializer_list<int32_t> ops, std::initializer_list<int32_t> values) const;
  // The last op before `before` that writes the value, taken or not.
  std::size_t producer(int32_t value, std::size_t before) const;
  // Takes that op for the subgraph. Throws Refusal if there is none.
  std::size_t take(std::size_t op, const char* otherwise);
  std::size_t take(int32_t op, std::initializer_list<int32_t> values, const char* otherwise) {
    return take(find({op}, values), otherwise);
  }
  void release(std::size_t op) { taken_[op - first_] = false; }
  bool taken(std::size_t op) const { return op >= first_ && op < end() && taken_[op - first_]; }
  std::vector<uint32_t> chosen() const;

  // An op that is not taken and reads bytes of the value; kNone if there is none.
  std::size_t outer_reader(int32_t value) const;
  // Whether ops that are not taken need the value.
  bool needed(int32_t value) const;

 private:
  const plugin::ProgramDesc& desc_;
  std::size_t first_;
  std::vector<bool> taken_;  // by op from first_
};

}  // namespace gpunn::cuda_tiled
