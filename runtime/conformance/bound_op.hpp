#pragma once

#include <gpunn/check.hpp>

#include <functional>
#include <memory>
#include <vector>

#include "execution/backend.hpp"
#include "ops/reference.hpp"

namespace gpunn::conformance {

using ops::ReferenceTensor;

using OutputBytes = std::vector<std::vector<std::byte>>;

// An op with its kernel and its tensors on the device. It can be enqueued any number of times. The backend must serve
// it.
class BoundOp {
 public:
  BoundOp(execution::Backend& backend, const graph::OpSignature& signature);

  const execution::Placement& placement() const { return placement_; }
  // Writes the given inputs; outputs that are not in place are filled with poison.
  void write(const std::vector<ReferenceTensor>& inputs);
  void enqueue();
  OutputBytes read();  // when all is done
  // Whether the poison is unchanged.
  bool untouched();

 private:
  execution::Backend& backend_;
  const graph::OpSignature& signature_;
  execution::Placement placement_;
  execution::Kernel kernel_;
  std::vector<execution::Buffer> inputs_, own_outputs_;
  execution::Buffer workspace_;
  std::vector<gpunn_tensor> in_, out_;
};

// Whether the backend can capture the op with these tensors; otherwise the verdict is `unsupported` and says why. It is
// optional if the op is not the reason.
bool is_capturable(const execution::Backend& backend, const execution::Placement& placement, CheckCase& result);

}  // namespace gpunn::conformance
