#include "conformance/stream/behind_delay.hpp"
#include "conformance/stream/ordering.hpp"
#include "conformance/stream/side_by_side.hpp"
#include "conformance/suites.hpp"
#include "ops/case.hpp"

namespace gpunn::conformance {

using ops::Case;
using ops::one_case_each;

Checks stream_suite(const CheckOptions& options) {
  Checks checks;
  for (auto group : {event_checks, in_order_checks}) {
    for (const StreamCheck& check : group()) {
      checks.push_back(make_check("stream", check.member, check.name));
      checks.back().run = [run = check.run](Workbench& bench, CheckCase& result, const Note&) {
        result.detail = run(bench.chain(), bench.delay());
      };
    }
  }
  for (const Case& test : one_case_each(ops_of(options))) {
    checks.push_back(make_check("stream", test.signature, "behind work on its stream: " + test.name));
    checks.back().run = [test](Workbench& bench, CheckCase& result, const Note&) {
      run_behind_delay(test, bench, result);
    };
    checks.push_back(make_check("stream", test.signature, "beside another on its stream: " + test.name));
    checks.back().labels.optional = true;  // a plugin need not allow it
    checks.back().run = [test](Workbench& bench, CheckCase& result, const Note&) {
      run_side_by_side(test, bench, result);
    };
  }
  return checks;
}

}  // namespace gpunn::conformance
