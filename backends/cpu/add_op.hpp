// How a family registers an op: it writes
//
//   struct ReluPlan { ... };                              // all that enqueue needs
//   ReluPlan plan_relu(const OpDesc& desc);               // may throw Refusal
//   void run_relu(const ReluPlan& plan, const OpArgs& args);
//   add_op(device, GPUNN_OP_RELU, plan_relu, run_relu);
//
// and the query is plan_relu's success, of a desc that is as the op's row declares. A plan with a member
// workspace_bytes gets that much scratch memory.
#pragma once

#include <gpunn/kernel.hpp>

#include "common/requirements.hpp"

namespace gpunn::cpu {

using namespace backends;

// Serves `op` by plan_of(desc) at query and creation, and run(plan, args) at each enqueue. Any callables.
template <class PlanOf, class Run>
void serve(plugin::Device& device, int32_t op, PlanOf plan_of, Run run) {
  device.add(op, {.query =
                      [plan_of](const OpDesc& desc) {
                        [[maybe_unused]] const auto plan = plan_of(desc);
                        if constexpr (requires { plan.workspace_bytes; }) {
                          return plugin::Support::yes(plan.workspace_bytes);
                        } else {
                          return plugin::Support::yes();
                        }
                      },
                  .create =
                      [plan_of, run](const OpDesc& desc) {
                        return plugin::make_kernel(
                            [plan = plan_of(desc), run](plugin::Stream&, const OpArgs& args) { run(plan, args); });
                      }});
}

template <class Plan>
void add_op(plugin::Device& device, int32_t op, Plan (*plan_of)(const OpDesc&),
            void (*run)(const Plan&, const OpArgs&)) {
  serve(device, op, plan_of, run);
}

}  // namespace gpunn::cpu
