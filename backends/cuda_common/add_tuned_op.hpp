// Registers an op whose algorithm is chosen at creation. A family of ops writes
//
//   struct MatmulProblem { ...; uint64_t workspace_bytes; };   // the op at its shape, validated; a value
//   MatmulProblem matmul_problem(const OpDesc& desc);          // throws Refusal
//   TuningTask matmul_task(TunedDevice& device, const MatmulProblem& problem);
//   add_tuned_op(device, GPUNN_OP_MATMUL, "matmul", matmul_problem, matmul_task);
//
// The query only depends on the problem and calls no library. Its workspace size is a limit, computed from the shape,
// that all algorithms must keep.
#pragma once

#include <gpunn/kernel.hpp>

#include <memory>
#include <utility>

#include "cuda_common/add_op.hpp"
#include "cuda_common/autotune.hpp"

namespace gpunn::cuda {

using namespace backends;

template <class Problem, class OwnDevice>
void add_tuned_op(OwnDevice& device, int32_t op, const char* name, Problem (*problem_of)(const OpDesc&),
                  TuningTask (*task_of)(OwnDevice&, const Problem&), Dtypes dtypes = Dtypes::f32,
                  Layouts layouts = Layouts::packed) {
  plugin::KernelFactory factory;
  factory.half = dtypes == Dtypes::floating;
  factory.channels_last = layouts == Layouts::channels_last_too;
  factory.query = [problem_of](const OpDesc& desc) {
    const Problem problem = problem_of(desc);
    if constexpr (requires { problem.score(); }) return plugin::Support::yes(problem.workspace_bytes, problem.score());
    return plugin::Support::yes(problem.workspace_bytes);
  };
  factory.create = [&device, problem_of, task_of, name](const OpDesc& desc) {
    AlgorithmPtr chosen = choose_algorithm(device, desc, task_of(device, problem_of(desc)));
    return plugin::make_kernel(
        [algorithm = std::move(chosen), name](plugin::Stream& stream, const plugin::OpArgs& args) {
          const ProfilerRange range(name);
          algorithm->run(args, native(stream));
        });
  };
  device.add(op, std::move(factory));
}

}  // namespace gpunn::cuda
