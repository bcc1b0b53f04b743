#include "config/checked_backends.hpp"

#include <gpunn/error.hpp>
#include <gpunn/experiment.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace gpunn::config;

TEST_CASE("check:A,B names two backends, anything else one") {
  const auto two = checked_backends("check:cpu,cuda_naive");
  REQUIRE(two);
  CHECK(two->trained == "cpu");
  CHECK(two->checked == "cuda_naive");
  CHECK(two->text() == "check:cpu,cuda_naive");
  CHECK_FALSE(checked_backends("cpu"));
  CHECK_FALSE(checked_backends("auto"));
  CHECK(trained_backend("check:a,b") == "a");
  CHECK(trained_backend("a") == "a");
  CHECK_NOTHROW(require_one_backend("cpu", "a plan"));
  CHECK_THROWS_WITH(require_one_backend("check:a,b", "a plan"), Contains("a plan takes one backend"));
}

TEST_CASE("two names that are not two are refused with the place") {
  for (const char* bad : {"check:", "check:cpu", "check:,cpu", "check:cpu,", "check:a,b,c"}) {
    const auto errors = config_test::errors_of(config_test::kSound + "backend: \"" + bad + "\"\n");
    REQUIRE(errors.size() == 1);
    CHECK_THAT(errors[0], Contains("e.yaml:3:") && Contains("expected two names, as in check:") && Contains(bad));
  }
  CHECK(parse_experiment(config_test::kSound + "backend: check:cpu,mine\n", "e.yaml").backend == "check:cpu,mine");
}

TEST_CASE("each of two backends may be a file, relative to the working directory or to the experiment's") {
  const std::string backend =
      parse_experiment(config_test::kSound + "backend: check:cpu,mine/libx.so\n", "/somewhere/e.yaml").backend;
  CHECK_THAT(backend, Contains("check:cpu,/") && Contains("/mine/libx.so"));
}
