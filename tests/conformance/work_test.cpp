// Work in child processes: its results, and the report about work that ends its process.
#include "conformance/process/work.hpp"

#include <gpunn/error.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <unistd.h>

#include "catch.hpp"

using namespace gpunn;
using namespace gpunn::conformance;

namespace {

// Does as `plan` says: 'p' passes, 'f' throws, 'c' crashes, 'e' exits, 'h' hangs, 'l' loses the device.
class Planned final : public Work {
 public:
  explicit Planned(std::string what) : plan(std::move(what)) {}

  Opened open() override {
    if (opening == 'f') throw Error("the key is lost", ExitCode::missing);
    if (opening == 'c') std::raise(SIGSEGV);
    return {"planned", "a device", opening == 'n' ? "the socket is empty" : ""};
  }
  std::size_t size() const override { return plan.size(); }
  void run(std::size_t index, CheckCase& result, const Note& note) override {
    ++runs;
    result.error = static_cast<double>(index) + 0.5;
    result.detail = "run " + std::to_string(runs) + " of its process";
    const char what = plan[index];
    if (what == 'f') throw std::runtime_error("as planned");
    note("step " + std::to_string(index));
    if (what == 'c') std::raise(SIGSEGV);
    if (what == 'e') {
      std::puts("so long");
      std::fflush(stdout);
      _exit(3);
    }
    if (what == 'h') std::this_thread::sleep_for(std::chrono::hours(1));
    if (what == 'l') throw std::runtime_error("failed (DEVICE_LOST)");
  }
  void close() override {
    if (closing == 'c') std::abort();
  }

  std::string plan;
  char opening = 'p', closing = 'p';
  int runs = 0;
};

struct Result {
  std::vector<CheckCase> cases;
  std::string trouble;
  Opened opened;
};

Result run(Planned& work) {
  Result result;
  WorkListener listener;
  listener.opened = [&](const Opened& opened) { result.opened = opened; };
  listener.done = [&](std::size_t index, CheckCase test) {
    CHECK(index == result.cases.size());
    result.cases.push_back(std::move(test));
  };
  result.trouble = run_in_children(
      work, listener, {.open = std::chrono::milliseconds(20000), .check = std::chrono::milliseconds(1000)});
  return result;
}

}  // namespace

TEST_CASE("work is done elsewhere, and its results come here") {
  Planned work("ppf");
  const Result result = run(work);
  CHECK(result.trouble.empty());
  CHECK(result.opened.backend == "planned");
  CHECK(result.opened.device == "a device");
  REQUIRE(result.cases.size() == 3);
  CHECK(work.runs == 0);
  CHECK(result.cases[1].verdict == Verdict::passed);
  CHECK(result.cases[1].error == 1.5);
  CHECK(result.cases[1].detail == "run 2 of its process");
  CHECK(result.cases[2].verdict == Verdict::failed);
  CHECK(result.cases[2].detail == "as planned");
}

TEST_CASE("work that ends its process has failed, and the rest goes on in another") {
  Planned work("pcpehpclp");
  const Result result = run(work);
  CHECK(result.trouble.empty());
  REQUIRE(result.cases.size() == work.plan.size());
  CHECK_THAT(result.cases[1].detail, Contains("step 1 crashed (Segmentation fault)"));
  CHECK(result.cases[2].detail == "run 1 of its process");
  CHECK_THAT(result.cases[3].detail, Contains("step 3 ended the process (exit code 3), and last printed: so long"));
  CHECK_THAT(result.cases[4].detail, Contains("step 4 hung"));
  CHECK(result.cases[5].detail == "run 1 of its process");
  CHECK_THAT(result.cases[6].detail, Contains("crashed"));
  CHECK_THAT(result.cases[7].detail, Contains("DEVICE_LOST"));
  CHECK(result.cases[8].detail == "run 1 of its process");
  for (const std::size_t i : {0, 2, 5, 8}) CHECK(result.cases[i].verdict == Verdict::passed);
  for (const std::size_t i : {1, 3, 4, 6, 7}) CHECK(result.cases[i].verdict == Verdict::failed);
}

TEST_CASE("what can't be opened or closed is told") {
  Planned refusing("pp");
  refusing.opening = 'f';
  try {
    run(refusing);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::missing);
    CHECK(std::string(error.what()) == "the key is lost");
  }
  Planned crashing("pp");
  crashing.opening = 'c';
  CHECK_THAT(run(crashing).trouble, Contains("opening the device crashed"));

  Planned deviceless("pp");
  deviceless.opening = 'n';
  const Result none = run(deviceless);
  CHECK(none.opened.no_device == "the socket is empty");
  CHECK(none.cases.empty());
  CHECK(none.trouble.empty());

  Planned untidy("pp");
  untidy.closing = 'c';
  const Result left = run(untidy);
  CHECK(left.cases.size() == 2);
  CHECK_THAT(left.trouble, Contains("closing the device crashed (Aborted)"));
}
