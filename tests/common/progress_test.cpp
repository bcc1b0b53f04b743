#include <gpunn/progress.hpp>

#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "catch.hpp"

using gpunn::long_work;
using gpunn::LongWork;

TEST_CASE("long work is listed while it goes on, the outer before the inner") {
  CHECK(long_work().empty());
  {
    LongWork outer("checking cpu", 10);
    outer.advance();
    outer.advance(3);
    outer.tell("MATMUL");
    LongWork inner("reading x.gz", 0, gpunn::WorkUnit::bytes);
    inner.reach(512);
    inner.expect(1024);
    const std::vector<gpunn::WorkReport> reports = long_work();
    REQUIRE(reports.size() == 2);
    CHECK(reports[0].what == "checking cpu");
    CHECK(reports[0].detail == "MATMUL");
    CHECK((reports[0].done == 4 && reports[0].total == 10));
    CHECK((reports[1].done == 512 && reports[1].total == 1024));
    CHECK(reports[1].unit == gpunn::WorkUnit::bytes);
    CHECK(reports[0].id != reports[1].id);
    CHECK(reports[0].seconds >= reports[1].seconds);
  }
  CHECK(long_work().empty());
}

TEST_CASE("every thread may advance the same work") {
  LongWork work("decoding images", 4000);
  {
    std::vector<std::jthread> team;
    for (int i = 0; i < 4; ++i) {
      team.emplace_back([&work] {
        for (int k = 0; k < 1000; ++k) work.advance();
      });
    }
    for (int i = 0; i < 100; ++i) CHECK(long_work().at(0).done <= 4000);
  }
  CHECK(long_work().at(0).done == 4000);
}

TEST_CASE("a child process may work, whatever another thread of its parent was doing") {
  const LongWork outer("checking cpu");
  std::atomic<bool> stop{false};
  std::jthread display([&stop] {
    while (!stop) long_work();
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      ::alarm(20);
      const LongWork inner("preparing kernels");
      _exit(long_work().size() == 2 ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  stop = true;
}
