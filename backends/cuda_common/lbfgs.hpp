// The tensors of LBFGS_UPDATE.
#pragma once

#include <gpunn/plugin.hpp>

#include <cstdint>

namespace gpunn::cuda {

struct LbfgsTensors {
  float *w, *last_gradient, *last_step, *steps, *changes;
  const float *g, *lr;
  const int64_t* step;
};

inline LbfgsTensors lbfgs_tensors(const plugin::OpArgs& args) {
  return {.w = args.out<float>(0),
          .last_gradient = args.out<float>(1),
          .last_step = args.out<float>(2),
          .steps = args.out<float>(3),
          .changes = args.out<float>(4),
          .g = args.in<float>(1),
          .lr = args.in<float>(2),
          .step = args.in<int64_t>(3)};
}

}  // namespace gpunn::cuda
