// The formulas that kernels are made of, against the references, which are written by hand.
#include <gpunn/op_formulas.hpp>

#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <type_traits>

#include "catch.hpp"
#include "ops/case.hpp"
#include "ops/near.hpp"
#include "ops/op.hpp"
#include "ops/traced.hpp"

using namespace gpunn;
using namespace gpunn::ops;

namespace {

using Formula = std::function<double(const graph::Attributes& attrs, const std::vector<double>& x)>;

template <int32_t op>
double apply(const graph::Attributes& attrs, const std::vector<double>& x) {
  using F = formulas::Formula<op>;
  const F formula{attrs.as<plugin::OpAttrs<op>>()};
  if constexpr (std::is_invocable_v<F, double>) {
    return formula(x.at(0));
  } else if constexpr (std::is_invocable_v<F, double, double>) {
    return formula(x.at(0), x.at(1));
  } else {
    return formula(x.at(0), x.at(1), x.at(2));
  }
}

const std::map<int32_t, Formula>& all_formulas() {
  static const std::map<int32_t, Formula> formulas{
#define GPUNN_FORMULA(op, parameters, ...) {GPUNN_OP_##op, apply<GPUNN_OP_##op>},
#define GPUNN_FORMULA_PART(name, parameters, ...)
#define GPUNN_UPDATE(op, parameters, ...)
#include <gpunn/op_formulas.inc>
#undef GPUNN_FORMULA
#undef GPUNN_FORMULA_PART
#undef GPUNN_UPDATE
  };
  return formulas;
}

}  // namespace

TEST_CASE("a traced formula computes with what are numbers already") {
  const traced::Traced two(2), three(3);
  CHECK((two + three).is(5));
  CHECK((two - three).is(-1));
  CHECK((two * three).is(6));
  CHECK((three / two).is(1.5));
  CHECK((two < three).is(1));
  CHECK((two > three).is(0));
  CHECK((-two).is(-2));
  CHECK(sqrt(traced::Traced(9)).is(3));
  CHECK(exp(traced::Traced(0)).is(1));
  CHECK(sigmoid(traced::Traced(0)).is(0.5));
  CHECK(select(two < three, two, three).is(2));
}

TEST_CASE("every element-wise op of numbers has a formula, and no other op") {
  for (const ops::OpInfo* info : ops::all_ops()) {
    const std::string_view signature = info->row->text;
    const bool rounds = info->name.find("QUANTIZE") != std::string_view::npos;
    const bool elementwise = signature.find("; elementwise") != std::string_view::npos && !rounds;
    INFO(info->name);
    CHECK(elementwise == all_formulas().contains(info->id));
  }
}

TEST_CASE("a formula in float64 is the reference") {
  std::set<int32_t> tested;
  for (const Case& test : all_cases()) {
    const auto formula = all_formulas().find(test.signature.op);
    if (formula == all_formulas().end()) continue;
    Random random(1, test.name);
    const std::vector<ReferenceTensor> inputs = test.inputs(random);
    const std::vector<double> reference = run_reference(test.signature, inputs)[0].values;
    bool broadcast = reference.size() > 20000;
    for (const ReferenceTensor& input : inputs) broadcast = broadcast || input.values.size() != reference.size();
    if (broadcast) continue;
    std::size_t different = 0;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      std::vector<double> x;
      for (const ReferenceTensor& input : inputs) x.push_back(input.values[i]);
      const double found = formula->second(test.signature.attrs, x);
      // The formulas' constants are those of f32.
      if (ops_test::near(found, reference[i], 2e-6 * (1 + std::abs(reference[i])))) continue;
      if (different++ == 0) UNSCOPED_INFO("element " << i << ": " << found << " and " << reference[i]);
    }
    INFO(ops::op_info(test.signature.op).name << " " << test.name);
    CHECK(different == 0);
    tested.insert(test.signature.op);
  }
  for (const auto& [op, formula] : all_formulas()) {
    INFO(ops::op_info(op).name);
    CHECK(tested.contains(op));
  }
}
