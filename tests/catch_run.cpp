// All that Catch2 2 compiles once, for every program of tests: it takes as long as twenty files of tests.
#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#include "catch_run.hpp"

int run_tests(int argc, char** argv) { return Catch::Session().run(argc, argv); }
