#include "conformance/case_runner.hpp"
#include "conformance/cases/case.hpp"
#include "conformance/suites.hpp"
#include "graph/op_info.hpp"

namespace gpunn::conformance {

void run_ops_suite(const SuiteContext& context) {
  for (const Case& test : all_cases()) {
    if (!context.wanted(test.signature.op)) continue;
    CheckCase result = make_check("ops", graph::op_info(test.signature.op).name, test.name);
    judge(result, [&] {
      if (!is_served(context.backend, test.signature, result)) return;  // before the data is made
      Random random(context.options.seed, result.op + test.name);
      const std::vector<OracleTensor> inputs = test.inputs(random);
      run_case(context.backend, test.signature, inputs, expect_oracle(test.signature, inputs), result);
    });
    context.report(std::move(result));
  }
  run_strided_copies(context);
}

}  // namespace gpunn::conformance
