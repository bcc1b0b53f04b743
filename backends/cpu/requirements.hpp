// What an op demands of its description, checked in one place: a family writes
//
//   struct ReluPlan { ... };                              // all that enqueue needs, validated
//   ReluPlan plan_relu(const OpDesc& desc);               // throws Refusal
//   void run_relu(const ReluPlan& plan, const OpArgs& args);
//   add_op(device, GPUNN_OP_RELU, plan_relu, run_relu);
//
// and the query is plan_relu's success. A plan with a member workspace_bytes gets that much scratch memory.
#pragma once

#include <gpunn/plugin.hpp>

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>

namespace gpunn::cpu {

using plugin::OpArgs;
using plugin::OpDesc;

// Why an op is not served; becomes the reason of Support::no.
class Refusal final : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void require(bool holds, const char* otherwise) {
  if (!holds) throw Refusal(otherwise);
}

// Comes first in every plan: the counts of tensors, and that each is a tensor at all (known dtype, rank 0 to 8, sizes
// that are not negative and whose product does not overflow).
void require_tensors(const OpDesc& desc, std::size_t least_inputs, std::size_t most_inputs, std::size_t outputs);

// Packed row-major of that dtype. A tensor without elements is packed whatever its strides.
void require_packed(const gpunn_tensor& tensor, int32_t dtype, const char* name);
void require_shape(const gpunn_tensor& tensor, std::initializer_list<int64_t> shape, const char* name);
void require_same_shape(const gpunn_tensor& a, const gpunn_tensor& b, const char* names);

// A packed 0-d tensor of that dtype.
void require_scalar(const gpunn_tensor& tensor, int32_t dtype, const char* name);

bool same_shape(const gpunn_tensor& a, const gpunn_tensor& b);

// Bytes of an element; 0 for an unknown dtype.
std::size_t dtype_size(int32_t dtype);

const char* dtype_name(int32_t dtype);

// The op's attributes. Members that the host's older struct lacks are 0.
template <class Attrs>
Attrs require_attrs(const OpDesc& desc) {
  require(desc.raw().attrs != nullptr, "the attributes are missing");
  return desc.attrs<Attrs>();
}

// Serves `op` by plan(desc) at query and creation, and run(plan, args) at each enqueue.
template <class Plan>
void add_op(plugin::Device& device, int32_t op, Plan (*plan)(const OpDesc&), void (*run)(const Plan&, const OpArgs&)) {
  plugin::KernelFactory factory;
  factory.query = [plan](const OpDesc& desc) {
    try {
      const Plan made = plan(desc);
      uint64_t workspace_bytes = 0;
      if constexpr (requires { made.workspace_bytes; }) workspace_bytes = made.workspace_bytes;
      return plugin::Support::yes(workspace_bytes);
    } catch (const Refusal& refusal) {
      return plugin::Support::no(refusal.what());
    }
  };
  factory.create = [plan, run](const OpDesc& desc) {
    return plugin::make_kernel([made = plan(desc), run](plugin::Stream&, const OpArgs& args) { run(made, args); });
  };
  device.add(op, std::move(factory));
}

}  // namespace gpunn::cpu
