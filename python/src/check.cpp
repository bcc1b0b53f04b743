#include <gpunn/check.hpp>
#include <gpunn/error.hpp>

#include <string>
#include <vector>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errands/errand.hpp"
#include "values/record.hpp"
#include "values/words.hpp"

namespace gpunn::python {

namespace {

void bind_cases(nb::module_& module) {
  Record<CheckCase>(module, "CheckCase", "One case of the conformance suites.")
      .field("backend", &CheckCase::backend)
      .field("suite", &CheckCase::suite)
      .field("op", &CheckCase::op)
      .field("name", &CheckCase::name)
      .field("kernel", &CheckCase::kernel)
      .field("plugin", &CheckCase::plugin)
      .field("refusal", &CheckCase::refusal)
      .field("dtype", &CheckCase::dtype)
      .computed("verdict", [](const CheckCase& c) { return std::string(name_of(c.verdict)); })
      .field("detail", &CheckCase::detail, "Of a failure: where, expected, found, tolerance.")
      .field("error", &CheckCase::error, "The largest, in units of the tolerance.")
      .field("seconds", &CheckCase::seconds)
      .field("gflops", &CheckCase::gflops)
      .field("gigabytes", &CheckCase::gigabytes);
  Record<CheckReport>(module, "CheckReport", "Whether a backend's kernels are right.")
      .field("backend", &CheckReport::backend)
      .field("device", &CheckReport::device)
      .field("passed", &CheckReport::passed)
      .field("failed", &CheckReport::failed)
      .field("skipped", &CheckReport::skipped)
      .computed("ok", [](const CheckReport& r) { return r.ok(); })
      .of()
      .def_ro("cases", &CheckReport::cases);
}

}  // namespace

void bind_check(nb::module_& module) {
  bind_cases(module);
  module.def(
      "check",
      [](const std::string& backend, const std::vector<std::filesystem::path>& plugins,
         const std::vector<std::string>& suites, const std::vector<std::string>& ops,
         const std::vector<std::string>& cases, const std::vector<std::string>& without,
         const std::vector<std::string>& kernels, const std::string& profile, const std::string& precision,
         const std::string& reference, uint64_t seed, int threads, bool strict, int limit_seconds, nb::handle on_case) {
        CheckOptions options{.backend = backend,
                             .plugins = plugins,
                             .suites = suites,
                             .ops = ops,
                             .cases = cases,
                             .without = without,
                             .kernels = kernels,
                             .profile = profile,
                             .precision = precision_named(precision),
                             .reference = reference,
                             .seed = seed,
                             .threads = threads,
                             .strict = strict,
                             .limit_seconds = limit_seconds,
                             .on_case = {}};
        return on_errand(false, [options, on_case](Errand& errand) mutable {
          options.on_case = [&](const CheckCase& one) {
            if (!on_case.is_none()) errand.ask([&] { on_case(nb::cast(one, nb::rv_policy::copy)); });
            if (errand.stopped()) throw Error("interrupted", ExitCode::interrupted);
          };
          return check(options);
        });
      },
      nb::arg("backend"), nb::arg("plugins"), nb::arg("suites"), nb::arg("ops"), nb::arg("cases"), nb::arg("without"),
      nb::arg("kernels"), nb::arg("profile"), nb::arg("precision"), nb::arg("reference"), nb::arg("seed"),
      nb::arg("threads"), nb::arg("strict"), nb::arg("limit_seconds"), nb::arg("on_case").none(),
      "Runs the conformance suites. The backend is opened in child processes.");
  module.def("check_suites", &check_suites, "The names of suites.");
  module.def("check_ops", &check_ops, "The names of ops.");
  module.def(
      "check_profiles",
      [] {
        std::vector<std::pair<std::string, std::string>> profiles;
        for (const CheckProfile& one : check_profiles()) profiles.emplace_back(one.name, one.description);
        return profiles;
      },
      "The names of profiles, and what each requires.");
}

}  // namespace gpunn::python
