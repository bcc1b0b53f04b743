// How a family registers an op: it writes
//
//   struct ReluPlan { ... };                              // all that enqueue needs, validated
//   ReluPlan plan_relu(const OpDesc& desc);               // throws Refusal
//   void run_relu(const ReluPlan& plan, const OpArgs& args);
//   add_op(device, GPUNN_OP_RELU, plan_relu, run_relu);
//
// and the query is plan_relu's success. A plan with a member workspace_bytes gets that much scratch memory.
#pragma once

#include <gpunn/plugin.hpp>

#include <utility>

#include "common/requirements.hpp"

namespace gpunn::cpu {

using namespace backends;

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
