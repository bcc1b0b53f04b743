#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace gpunn::bench {

// What the elements of an input are.
struct Content {
  enum class Kind {
    uniform,   // random numbers from low to high
    whole,     // random whole numbers from low to high - 1
    constant,  // low
    rising     // from low to high in even steps
  };
  Kind kind = Kind::uniform;
  double low = -1, high = 1;
};

// An op at a shape, with what its inputs hold; those not named are random numbers in [-1, 1), integers 0.
struct OpRequest {
  OpRequest(graph::OpSignature of, std::map<std::size_t, Content> with = {})
      : signature(std::move(of)), contents(std::move(with)) {}
  graph::OpSignature signature;
  std::map<std::size_t, Content> contents;  // by input
  // Replaces inputs by what depends on others, such as a saved output of the forward op.
  std::function<void(const graph::OpSignature& signature, std::vector<std::vector<std::byte>>& inputs)> derive = {};
  Content content(std::size_t input) const;
  // Random elements of an input, the same for the same seed.
  std::vector<std::byte> values(std::size_t input, uint64_t seed) const;
  std::vector<std::vector<std::byte>> inputs(uint64_t seed) const;  // all of them, derived ones too
};

// The op and types that `gpunn bench op NAME SHAPE` means. Throws Error(usage) with the form that the op expects.
OpRequest parse_request(const std::string& op, const std::string& shape);

// "512..8192" as a sweep by powers of two: of square matrices for an op on two matrices, of lengths for others. What is
// no range comes back alone.
std::vector<std::string> swept(const std::string& op, const std::string& shape);

}  // namespace gpunn::bench
