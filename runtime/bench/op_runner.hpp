#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/op_request.hpp"
#include "execution/backend.hpp"

namespace gpunn::bench {

struct SampleLimits {
  int64_t repeats = 30, warmup = 3;
};

struct SampleTimes {
  std::vector<double> seconds;  // of a run, by sample; sorted
  int64_t runs = 1;             // in a sample
  bool captured = false;
};

// An op with one kernel and its tensors on the device.
class OpRunner {
 public:
  using Bytes = std::vector<std::byte>;
  // `cold`: with enough sets of tensors that no run finds data of an earlier run in a cache.
  OpRunner(execution::Backend& backend, const graph::OpSignature& signature, const execution::Placement& placement,
           const std::vector<Bytes>& inputs, bool cold);

  // Of the first run, on the inputs as given.
  std::vector<Bytes> run_once();
  // By the device's clock. Small ops run many times in a sample, as one captured graph if possible.
  SampleTimes time(const SampleLimits& limits);
  int64_t sets() const { return sets_; }

 private:
  void enqueue(int64_t set);

  execution::Backend& backend_;
  const graph::OpSignature& signature_;
  execution::Placement placement_;
  execution::Kernel kernel_;
  std::string what_;
  int64_t sets_ = 1;
  std::vector<execution::Buffer> memory_;
  execution::Buffer workspace_;
  std::vector<std::vector<gpunn_tensor>> inputs_, outputs_;  // by set
};

}  // namespace gpunn::bench
