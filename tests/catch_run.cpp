// All that Catch2 2 compiles once, for every program of tests: it takes as long as twenty files of tests.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include "catch_run.hpp"

int run_tests(int argc, char** argv) { return Catch::Session().run(argc, argv); }

// The HDF5 library itself leaks where it meets a damaged file. Only the leak sanitizer asks.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libhdf5";
}
