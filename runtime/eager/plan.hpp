#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eager/program.hpp"
#include "execution/backend.hpp"
#include "execution/streams/caller_stream.hpp"

namespace gpunn::eager {

// A program with chosen kernels and planned temporary memory: a call only fills in addresses. One thread at a time may
// use it.
class Plan {
 public:
  // Bit i of `staged`: external i lies where kernels can't use it. It is copied to or from temporary memory.
  Plan(execution::Backend& backend, Program program, uint64_t staged);

  uint64_t scratch_bytes() const { return scratch_bytes_; }
  // Whether all kernels may be captured, and may run at the same time as others of the backend.
  bool capturable() const { return capturable_; }
  bool concurrent() const { return concurrent_; }
  const std::vector<std::string>& explanation() const { return explanation_; }

  // By external: the alignment in bytes that its kernels need. 1: that of an element.
  const std::vector<uint64_t>& alignments() const { return alignments_; }
  bool uses(std::size_t external) const { return read_[external] || written_[external]; }
  // One kernel, which may write over what it reads as the op's row says.
  bool single() const { return steps_.size() == 1; }

  // Puts the kernels on the stream. Externals that are not used may be nullptr.
  void enqueue(std::span<void* const> externals, void* scratch, const execution::CallerStream& stream);

 private:
  // The place of a kernel's tensor: `offset` bytes into an external, or into the temporary memory.
  struct Place {
    int external = -1;
    uint64_t offset = 0;
  };
  struct Step {
    execution::Kernel kernel;
    std::vector<gpunn_tensor> tensors;  // inputs, then outputs
    std::vector<const gpunn_tensor*> pointers;
    std::vector<Place> places;
    gpunn_op_args args{};
    uint64_t workspace = 0;
    std::string what;
  };
  struct Staging {
    std::size_t external = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  void add_steps(execution::Backend& backend, const graph::Graph& graph,
                 const std::vector<execution::Placement>& placements, const std::vector<int64_t>& value_offset,
                 const std::vector<int64_t>& workspace_offset, const std::vector<graph::ValueId>& externals);

  std::vector<Step> steps_;
  std::vector<Staging> loads_, stores_;  // raw copies before and after the kernels
  std::vector<uint64_t> alignments_;
  std::vector<bool> read_, written_;
  std::vector<std::string> explanation_;
  uint64_t scratch_bytes_ = 0;
  bool capturable_ = true, concurrent_ = true;
};

}  // namespace gpunn::eager
