#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "execution/steps/program_runner.hpp"
#include "inference/eight_bits/quantizers.hpp"
#include "inference/forward_program.hpp"
#include "inference/forward_weights.hpp"

namespace gpunn::inference {

enum class RangeMethod { maximum, entropy, percentile };

// The numbers that a tensor takes over the calibration's samples.
class TensorRange {
 public:
  // In two passes over the samples: first the extremes, then a histogram of |x| up to the largest.
  void see_extremes(std::span<const float> values);
  void see(std::span<const float> values);

  // How the tensor is stored. maximum: every number that was seen is within. percentile: this share of them is.
  // entropy: up to the threshold whose rounded distribution is nearest to the one seen, by the Kullback-Leibler
  // divergence (Migacz, 2017), less what chance adds to it. Tensors without negative numbers have the zero point 0, all
  // others 128.
  Quantizer quantizer(RangeMethod method, double percentile) const;
  int64_t count() const { return count_; }

 private:
  double threshold(RangeMethod method, double percentile) const;

  float low_ = 0, high_ = 0;
  int64_t count_ = 0;
  std::vector<double> histogram_;
};

// Runs a forward program and reads tensors of it.
class TensorProbe {
 public:
  // `values` are of the program's graph. The program is as it is: no pass of the engine runs over it.
  TensorProbe(const ForwardModel& model, ForwardProgram program, std::span<const graph::ValueId> values, int64_t rows,
              const Weights& weights, std::unique_ptr<execution::Backend> backend);

  // Of so many rows, packed, as the data set has them in this type. The results are those of the values, in their
  // order.
  std::vector<std::vector<float>> run(std::span<const std::byte> samples, DType type);

 private:
  execution::ProgramRunner runner_;
  execution::RunnableProgram program_;
  ForwardInput input_;
  std::size_t values_;
};

}  // namespace gpunn::inference
