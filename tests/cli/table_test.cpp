#include "cli/terminal/table.hpp"

#include <limits>

#include "catch.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"

using namespace gpunn::cli;

TEST_CASE("columns are as wide as their widest cell") {
  Table table({{"NAME"}, {"BYTES", Align::right}, {"WHERE"}});
  CHECK(table.empty());
  table.add({"cpu", "12", "here"});
  table.add({"cuda_naive", "1234567", "there"});
  table.add({"short"});
  CHECK(table.text() ==
        "NAME          BYTES  WHERE\n"
        "cpu              12  here\n"
        "cuda_naive  1234567  there\n"
        "short                \n");
}

TEST_CASE("colours and letters beyond ASCII take no more room than they show") {
  CHECK(display_width("\x1b[31mred\x1b[0m") == 3);
  CHECK(display_width("caf\xC3\xA9") == 4);
  Table table({{"A"}, {"B"}});
  table.add({coloured("red", Colour::red, true), "x"});
  table.add({"plain", "y"});
  CHECK_THAT(table.text(), Contains("\x1b[31mred\x1b[0m    x\n") && Contains("plain  y\n"));
}

TEST_CASE("text from outside can't drive the terminal") {
  CHECK(printable("a\x1b[2Jb\rc\nd\te\x7F") == "a\\x1b[2Jb\\rc\nd\te\\x7f");
  CHECK(printable("caf\xC3\xA9 \xC2\x9B \xFF \xE2\x82") == "caf\xC3\xA9 \\xc2\\x9b \\xff \\xe2\\x82");
}

TEST_CASE("numbers for people") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.0 KiB");
  CHECK(bytes_text(1024 * 1024 - 1) == "1.0 MiB");
  CHECK(bytes_text(std::numeric_limits<uint64_t>::max()) == "16384.0 PiB");
  CHECK(clock_text(7.4) == "0:07");
  CHECK(clock_text(59.6) == "1:00");
  CHECK(clock_text(3723) == "1:02:03");
  CHECK(clock_text(-1) == "?");
  CHECK(clock_text(std::numeric_limits<double>::infinity()) == "?");
  CHECK(duration_text(0.0000123) == "12.3 us");
  CHECK(duration_text(0.25) == "250 ms");
  CHECK(duration_text(12.34) == "12.3 s");
  CHECK(duration_text(125) == "2:05");
  CHECK(rate_text(950) == "950");
  CHECK(rate_text(53'210) == "53.2k");
  CHECK(rate_text(999'999) == "1.00M");
  CHECK(percent_text(0.99123) == "99.12 %");
  CHECK(count_text(0) == "0");
  CHECK(count_text(999) == "999");
  CHECK(count_text(60'000) == "60 000");
  CHECK(count_text(-1'234'567) == "-1 234 567");
}
