#include "conformance/abi/abi_checks.hpp"
#include "conformance/suites.hpp"

namespace gpunn::conformance {

Checks abi_suite(const CheckOptions&) {
  Checks checks;
  for (auto group : {table_checks, memory_checks, stream_checks, contract_checks, query_checks}) {
    for (const AbiCheck& check : group()) {
      checks.push_back(make_check("abi", check.member, check.name));
      checks.back().op = check.op;
      checks.back().run = [run = check.run](Workbench& bench, CheckCase&, const Note& note) {
        run(bench.chain(), note);
      };
    }
  }
  return checks;
}

}  // namespace gpunn::conformance
