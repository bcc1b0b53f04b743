#pragma once

#include <gpunn/abi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "execution/backend.hpp"

namespace gpunn::execution {

struct Level;

// Sizes of an op's tensors, and of the scratch memory that its kernel asks for.
struct OpSizes {
  std::vector<uint64_t> inputs, outputs;
  uint64_t workspace = 0;
  uint64_t tensors() const;  // all of them
};

// Runs ops of an overlay whose memory is not that of the chain's base: inputs are copied through the host into memory
// of the overlay, and outputs back. An op that runs so has ended when run() returns, so it can't be captured.
class HostCopies {
 public:
  // `synchronizations` and `allocations` count the work of this class.
  HostCopies(const Level& overlay, const Level& base, int64_t& synchronizations, int64_t& allocations);
  ~HostCopies();
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // Room for an op, which has the memory for itself while it runs. Once there is room for all, nothing is allocated.
  void reserve(const OpSizes& sizes);

  // `args` are tensors of the base. Sizes must have been reserved.
  void run(gpunn_kernel* kernel, const gpunn_op_args& args, const OpSizes& sizes, const std::string& what);

 private:
  // Memory that grows.
  class Memory {
   public:
    Memory(const Level& level, int32_t kind, int64_t& allocations)
        : level_(level), kind_(kind), allocations_(allocations) {}
    ~Memory() { release(); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    void grow(uint64_t bytes);  // what was in it is lost
    std::byte* data() const { return data_; }

   private:
    void release() noexcept;
    const Level& level_;
    int32_t kind_;
    int64_t& allocations_;
    std::byte* data_ = nullptr;
    uint64_t bytes_ = 0;
  };

  uint64_t aligned(uint64_t bytes) const;
  uint64_t lay_out(const gpunn_op_args& args, const OpSizes& sizes);
  void copy_in(const gpunn_op_args& args, const OpSizes& sizes, const std::string& what);
  void copy_out(const gpunn_op_args& args, const OpSizes& sizes, const std::string& what);
  std::byte* host_side(const gpunn_tensor& of_base, uint64_t offset) const;
  void synchronize(const Level& level, const std::string& what) const;

  const Level& overlay_;
  const Level& base_;
  int64_t& synchronizations_;
  bool base_on_host_, overlay_on_host_;
  Memory memory_;   // of the overlay
  Memory staging_;  // on the host, where neither of the two is
  // Buffers of the current op, kept between ops so that a step allocates nothing.
  std::vector<uint64_t> offsets_;  // of inputs, then outputs
  std::vector<gpunn_tensor> tensors_;
  std::vector<const gpunn_tensor*> pointers_;
};

}  // namespace gpunn::execution
