// LARS_UPDATE.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/op.hpp"
#include "ops/optimizer.hpp"

namespace gpunn::ops::lars {

namespace {

// --- LARS_UPDATE ---

double part_norm(const Values& x, int64_t begin, int64_t end) {
  double sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += x[static_cast<std::size_t>(i)] * x[static_cast<std::size_t>(i)];
  return std::sqrt(sum);
}

void lars_update_reference(ReferenceCall& call) {
  const auto attrs = call.attrs<gpunn_lars_attrs>();
  const double lr = call.in(2).at(0);
  const Values &w = call.in(0), &g = call.in(1), &velocity = call.in(3), &offset = call.in(4);
  const auto place = [&](std::size_t i) {
    return static_cast<int64_t>(std::clamp(offset[i], 0.0, static_cast<double>(w.size())));
  };
  call.out(0) = w;
  call.out(1) = velocity;
  for (std::size_t part = 0; part + 1 < offset.size(); ++part) {
    const int64_t begin = place(part), end = place(part + 1);
    const double w_norm = part_norm(w, begin, end), g_norm = part_norm(g, begin, end);
    double rate = lr;
    if (begin < attrs.decayed && w_norm != 0 && g_norm != 0) {
      rate = lr * attrs.trust * w_norm / (g_norm + attrs.weight_decay * w_norm + attrs.epsilon);
    }
    for (int64_t at = begin; at < end; ++at) {
      const auto i = static_cast<std::size_t>(at);
      const double decay = at < attrs.decayed ? attrs.weight_decay : 0.0;
      const double step = attrs.momentum * velocity[i] + rate * (g[i] + decay * w[i]);
      call.out(1)[i] = step;
      call.out(0)[i] = w[i] - step;
    }
  }
}

double norm_of(const Evaluation& e, std::size_t input, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += magnitude(e, input, i) * magnitude(e, input, i);
  return std::sqrt(sum);
}

// A norm may be summed in f32, in any order.
std::vector<double> lars_scale(const Evaluation& e, std::size_t output) {
  const auto a = e.signature.attrs.as<gpunn_lars_attrs>();
  const std::vector<double>& offset = e.inputs.at(4).values;
  const std::vector<double>& velocity = e.inputs.at(3).values;
  std::vector<double> scale(e.reference.at(output).values.size(), 0.0);
  const auto place = [&](std::size_t i) {
    return static_cast<std::size_t>(std::clamp(offset[i], 0.0, static_cast<double>(scale.size())));
  };
  for (std::size_t part = 0; part + 1 < offset.size(); ++part) {
    const std::size_t begin = place(part), end = place(part + 1);
    const double sums = begin < end ? 2 * accumulation(static_cast<double>(end - begin)) : 0;
    const double w_norm = norm_of(e, 0, begin, end), g_norm = norm_of(e, 1, begin, end);
    const bool adapted = static_cast<int64_t>(begin) < a.decayed && w_norm != 0 && g_norm != 0;
    const double part_rate =
        learning_rate(e) * (adapted ? a.trust * w_norm / (g_norm + a.weight_decay * w_norm + a.epsilon) : 1.0);
    for (std::size_t i = begin; i < end; ++i) {
      const UpdatedElement x = updated_element(e, i, a);
      const double step = 2 * a.momentum * std::abs(velocity[i]) + (kStepError + sums) * part_rate * x.gradient();
      scale[i] = step + (output == 0 ? 1.5 * std::abs(e.reference[0].values[i]) : 0);
    }
  }
  return scale;
}

enum class Lacking { nothing, weights, gradients };

Attributes lars_attrs(float momentum, float decay, float trust, float epsilon, int64_t decayed) {
  return Attributes::of(gpunn_lars_attrs{.struct_size = 0,
                                         .momentum = momentum,
                                         .weight_decay = decay,
                                         .trust = trust,
                                         .epsilon = epsilon,
                                         .reserved = 0,
                                         .decayed = decayed});
}

// Where the parts begin, the last beyond the elements where they are not all to be in a part.
InputSpec offsets(std::vector<double> offset) {
  const auto parts = static_cast<int64_t>(offset.size());
  return i64({parts}, listed(std::move(offset)));
}

CaseSpec lars_case(int64_t n, float momentum, float decay, int64_t decayed, std::vector<double> offset,
                   const std::string& what, Lacking lacking = Lacking::nothing) {
  return {.attrs = lars_attrs(momentum, decay, 0.02F, 1e-6F, decayed),
          .inputs = {f32({n}, lacking == Lacking::weights ? constant(0) : uniform()),
                     f32({n}, lacking == Lacking::gradients ? constant(0) : uniform()), scalar(0.3), f32({n}),
                     offsets(std::move(offset))},
          .note = decay_note(decayed) + ", " + what};
}

std::vector<CaseSpec> lars_cases() {
  std::vector<CaseSpec> cases;
  for (const int64_t n : kParameterCounts) {
    const int64_t some = some_decayed(n);
    const auto all = static_cast<double>(n), first = static_cast<double>(some);
    cases.push_back(lars_case(n, 0.9F, 0.1F, some, {0, std::floor(first / 2), first, all}, "three parts"));
    cases.push_back(lars_case(n, 0, 0, n, {0, all}, "one part"));
    cases.push_back(lars_case(n, 0.9F, 0.1F, 0, {0, 0, all, all}, "empty parts"));
    cases.push_back(lars_case(n, 0.9F, 0.1F, n, {-7, std::floor(first / 2), all + 9}, "offsets outside"));
    cases.push_back(lars_case(n, 0.9F, 0.1F, n, {0, all}, "weights of 0", Lacking::weights));
    cases.push_back(lars_case(n, 0.9F, 0.1F, n, {0, all}, "gradients of 0", Lacking::gradients));
  }
  cases.push_back(lars_case(0, 0.9F, 0.1F, 0, {0, 0}, "no element"));
  cases.push_back(lars_case(7, 0.9F, 0.1F, 7, {0}, "no part"));
  return cases;
}

CaseSpec typical_lars() {
  constexpr int64_t kParts = 64, kPart = kTypicalParameters / kParts;
  std::vector<double> offset;
  for (int64_t i = 0; i <= kParts; ++i) offset.push_back(static_cast<double>(i * kPart));
  CaseSpec spec{.attrs = lars_attrs(0.9F, 1e-4F, 1e-3F, 1e-8F, kTypicalParameters), .inputs = typical_update(1)};
  spec.inputs.push_back(offsets(std::move(offset)));
  return spec;
}

// One part: all of it.
CaseSpec lars_request(Written& r) {
  CaseSpec spec{.inputs = update_request(r, 1)};
  spec.attrs = lars_attrs(0.9F, 1e-4F, 1e-3F, 1e-8F, r.sizes[0]);
  spec.inputs.push_back(offsets({0, static_cast<double>(r.sizes[0])}));
  return spec;
}

}  // namespace

std::vector<OpInfo> rows() {
  return {
      {.id = GPUNN_OP_LARS_UPDATE,
       .flops = flops_per_input<10>,
       .reference = lars_update_reference,
       .tolerance = {{lars_scale, "two sums of a part's squares in any order, then three products"}},
       .cases = lars_cases,
       .typical = typical_lars(),
       .largest = kLargestSquared,
       .request = lars_request},
  };
}

}  // namespace gpunn::ops::lars
