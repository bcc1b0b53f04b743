#pragma once

#include <gpunn/precision.hpp>

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"
#include "ops/values.hpp"

namespace gpunn::ops {

// The op on other inputs of the same types.
using Evaluator = std::function<std::vector<ReferenceTensor>(const std::vector<ReferenceTensor>& inputs)>;

// A case whose result is to be judged.
struct Evaluation {
  const graph::OpSignature& signature;
  const std::vector<ReferenceTensor>& inputs;
  const std::vector<ReferenceTensor>& reference;  // the outputs in float64
  // Some bounds need the op on the absolute values of its inputs. Empty: the reference, which takes its time.
  Evaluator evaluate = {};
  // The rounding of f32 factors in ops that multiply matrices or convolve.
  Precision precision = Precision::fp32;

  std::vector<ReferenceTensor> on(const std::vector<ReferenceTensor>& other_inputs) const;
};

// Bounds of an op's rounding errors: for each element of an output a factor of the unit roundoff of the computation,
// f32, or f64 for an output of f64. Each function is the error analysis of one kind of op.
using ErrorScale = std::function<std::vector<double>(const Evaluation& evaluation, std::size_t output)>;

// A row of an op's tolerances.
struct ToleranceRow {
  ErrorScale scale;
  std::string_view reason;
  bool multiplies = false;     // products of this op may be rounded to the precision that the user allows
  bool has_precision = false;  // the scale already has what these roundings come to
};

// --- Analyses that several ops share ---

std::vector<double> exact_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> one_rounding_scale(const Evaluation& evaluation, std::size_t output);
std::vector<double> few_roundings_scale(const Evaluation& evaluation, std::size_t output);
// A function of the library, off by four units in the last place at most.
std::vector<double> function_scale(const Evaluation& evaluation, std::size_t output);
// A product and an addition.
std::vector<double> affine_scale(const Evaluation& evaluation, std::size_t output);
// A sum over each row of terms that are not below 0, so that the result itself is the sum of their absolute values.
std::vector<double> squares_scale(const Evaluation& evaluation, std::size_t output);

// y = d - log(sum of exp(d)) with d = x - max, of the first input: the logarithm is off by the relative error of its
// argument.
std::vector<double> log_softmax_scale(const Evaluation& evaluation, std::size_t output);

// A sum: the op on the absolute values of its inputs, times the error of a sum of `terms` numbers, the longest of the
// op.
using TermCount = double (*)(const graph::OpSignature& signature);
ErrorScale sum_scale(TermCount terms);
// The inputs after the first select the summands and must keep their signs.
ErrorScale first_input_sum_scale(TermCount terms);
// The number of elements of the first input.
double all_terms(const graph::OpSignature& signature);
// The product of a shape's sizes from a dimension on.
double sizes_from(const Shape& shape, std::size_t dimension);

// For an op that sums products of its first two inputs: the sums of the products' absolute values, without bias or
// activation.
std::vector<double> products_scale(const Evaluation& evaluation, std::size_t output);

// --- Pieces of analyses ---

std::vector<double> magnitudes(const std::vector<double>& values, double factor);

// Rounding errors of a sum of `terms` numbers, in units of the sum of their absolute values: they add up as a random
// walk, since the signs of roundings are as good as independent. 2 sqrt(n) is more than twice what a plain loop over n
// positive terms reaches among 10^5 sums; blocked and pairwise sums stay far below.
double accumulation(double terms);

// Half the distance from 1 to the next number of the type; 0 for integers.
double unit_roundoff(DType type);

// Roundings of exp, log, tanh or erf and what surrounds them; vectorised ones are good to a few units.
constexpr double kFunctionError = 8;

// For a tensor [N,C]: visit(first element) of each row; C; the largest element of the row that begins at `first`.
template <class Visit>
void for_each_row(const TensorType& type, Visit visit) {
  for (int64_t n = 0; n < type.shape.at(0); ++n) visit(static_cast<std::size_t>(n * type.shape.at(1)));
}
std::size_t columns(const TensorType& type);
double row_maximum(const std::vector<double>& x, std::size_t first, std::size_t columns);

// The errors of a channel's mean and variance in f32, in units of roundoff.
struct StatisticsError {
  double mean_error = 0;      // absolute
  double variance_error = 0;  // absolute
  double variance = 0;        // biased
};

StatisticsError statistics_error(const ChannelView& view, const std::vector<double>& x, std::size_t c);

constexpr double kRootError = 4;  // roundings of the sum with epsilon, of the root and of the quotient

// Errors of y, mean and rstd, in that order, of an op that normalises each channel of `groups`: of its first input, by
// gamma and beta, the next two; `affine` says which of these an element has.
std::vector<double> normalization_scale(const Evaluation& evaluation, std::size_t output, const ChannelView& groups,
                                        double epsilon, const std::function<std::size_t(std::size_t element)>& affine);

}  // namespace gpunn::ops
