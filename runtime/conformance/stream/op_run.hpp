#pragma once

#include <memory>
#include <string>
#include <vector>

#include "conformance/abi/raw_kernel.hpp"
#include "conformance/case_runner.hpp"
#include "conformance/workbench.hpp"
#include "ops/case.hpp"

namespace gpunn::conformance {

using ops::Case;

// One case of an op with its own memory, which the caller puts on streams: copies bring its inputs and save its
// outputs, so that the result shows when the kernel ran.
class OpRun {
 public:
  // `label` makes the random inputs differ from those of another run. Keeps the outputs of this many rounds.
  OpRun(const Case& test, Workbench& bench, const std::string& label, int rounds = 1);
  OpRun(const OpRun&) = delete;
  OpRun& operator=(const OpRun&) = delete;

  const RawKernel& kernel() const { return kernel_; }
  // `stream` of the bottom of the chain, `wrapper` the same for kernel().device().
  void enqueue(const RawStream& stream, const RawStream& wrapper, int round = 0);
  // After the streams are done: the mistake in the outputs of a round; empty: none. Raises `error` to the largest error
  // as a share of the tolerance.
  std::string fault(double& error, int round = 0) const;

 private:
  using Memory = std::unique_ptr<RawMemory>;

  const graph::OpSignature& signature_;
  std::vector<gpunn_tensor> in_, out_;
  RawDescription description_;
  RawKernel kernel_;
  Expectation expectation_;
  std::vector<Memory> staged_, inputs_, outputs_;  // an output in place has none
  std::vector<std::vector<Memory>> results_;       // by round
  Memory workspace_;
};

}  // namespace gpunn::conformance
