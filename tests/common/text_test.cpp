#include "common/text.hpp"

#include "catch.hpp"
#include "common/parse_number.hpp"

using namespace gpunn;

TEST_CASE("text is put together") {
  CHECK(join({}, ", ").empty());
  CHECK(join({"a"}, ", ") == "a");
  CHECK(join({"a", "b", "c"}, " -> ") == "a -> b -> c");
  CHECK(in_quotes("x") == "'x'");
  CHECK(shell_word("runs/a-1_b/2025:01.h5") == "runs/a-1_b/2025:01.h5");
  CHECK(shell_word("my runs") == "'my runs'");
  CHECK(shell_word("it's $HOME") == R"('it'\''s $HOME')");
  CHECK(shell_word("") == "''");
}

TEST_CASE("bytes are readable") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1.0 KiB");
  CHECK(human_bytes(1536) == "1.5 KiB");
  CHECK(human_bytes((uint64_t{1} << 20) - 1) == "1.0 MiB");  // not "1024.0 KiB"
  CHECK(human_bytes(uint64_t{3} << 30) == "3.0 GiB");
  CHECK(human_bytes(~uint64_t{0}) == "16.0 EiB");
}

TEST_CASE("a number is the whole text") {
  CHECK(parse_number<int64_t>("12") == 12);
  CHECK(parse_number<int64_t>("-3") == -3);
  CHECK(parse_number<double>("1e3") == 1000);
  for (const char* none : {"", "12x", " 12", "+12", "9223372036854775808"}) CHECK_FALSE(parse_number<int64_t>(none));
  CHECK_FALSE(parse_number<uint64_t>("-1"));
}
