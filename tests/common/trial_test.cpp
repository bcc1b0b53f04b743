#include "common/trial.hpp"

#include <gpunn/error.hpp>

#include <csignal>
#include <cstdlib>

#include "catch.hpp"

using namespace gpunn;

TEST_CASE("a crash in a trial is told of, and ends no more than the trial") {
  CHECK_THAT(crash_of([] { std::raise(SIGSEGV); }), Contains("signal 11"));
  CHECK_THAT(crash_of([] { std::abort(); }), Contains("signal 6"));
}

TEST_CASE("a trial that returns or throws has not crashed, and changes nothing here") {
  int changed = 0;
  CHECK(crash_of([&] { changed = 1; }).empty());
  CHECK(crash_of([] { throw Error("no such array"); }).empty());
  CHECK(changed == 0);
}
