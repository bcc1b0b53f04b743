#include <optional>

#include "conformance/abi/abi_checks.hpp"
#include "conformance/case_runner.hpp"
#include "conformance/suites.hpp"

namespace gpunn::conformance {

void run_abi_suite(const SuiteContext& context) {
  std::optional<RawChain> chain;
  for (auto group : {table_checks, memory_checks, stream_checks, query_checks}) {
    for (const AbiCheck& check : group()) {
      CheckCase result = make_check("abi", check.member, check.name);
      judge(result, [&] {
        if (!chain) chain.emplace(context.chain, context.options.threads);
        check.run(*chain);
      });
      context.report(std::move(result));
    }
  }
}

}  // namespace gpunn::conformance
