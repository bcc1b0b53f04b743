#include "config/substitution.hpp"

#include <gpunn/error.hpp>

#include "catch.hpp"

using gpunn::config::substitute;

namespace {

const std::map<std::string, std::string> kParameters = {
    {"a", "6"}, {"b", "-2"}, {"rate", "0.5"}, {"kind", "relu"}, {"big", "9223372036854775807"}};

std::string put(const std::string& text) { return substitute(text, kParameters); }

}  // namespace

TEST_CASE("text without parameters is left alone") {
  CHECK(put("3*4") == "3*4");
  CHECK(put("").empty());
}

TEST_CASE("a parameter is its value") {
  CHECK(put("$a") == "6");
  CHECK(put("$b") == "-2");
  CHECK(put("$rate") == "0.5");
  CHECK(put("$kind") == "relu");
  CHECK(put("block_${a}x") == "block_6x");
}

TEST_CASE("whole numbers are worked out") {
  CHECK(put("$a*2") == "12");
  CHECK(put("2 + $a * 3") == "20");
  CHECK(put("($a + 2) / 4") == "2");
  CHECK(put("$a - $b") == "8");
  CHECK(put("-$a") == "-6");
  CHECK(put("-($a+1)") == "-7");
}

TEST_CASE("what does not come out is an error") {
  CHECK_THROWS_WITH(put("$a/4"), Contains("'6/4' is not a whole number"));
  CHECK_THROWS_WITH(put("$a/0"), Contains("divides by 0"));
  CHECK_THROWS_WITH(put("$big/-1"), Contains("negative"));
  CHECK_THROWS_WITH(put("$big*2"), Contains("too large"));
  CHECK_THROWS_WITH(put("$big+1"), Contains("too large"));
  CHECK_THROWS_WITH(put("$a*"), Contains("can't work out '6*'"));
  CHECK_THROWS_WITH(put("($a+1"), Contains("can't work out '(6+1'"));
  CHECK_THROWS_WITH(put("$a 3+1"), Contains("can't work out"));
  CHECK_THROWS_WITH(put(std::string(4000, '(') + "$a+1"), Contains("can't work out"));
}

TEST_CASE("unknown and half-written parameters") {
  CHECK_THROWS_WITH(put("$knd"), Contains("unknown parameter '$knd'; did you mean 'kind'?"));
  CHECK_THROWS_WITH(put("5$"), Contains("expected a parameter's name"));
  CHECK_THROWS_WITH(put("${a"), Contains("expected '}'"));
  CHECK_THROWS_WITH(put("${}"), Contains("expected a parameter's name"));
}

TEST_CASE("what a text mentions is told") {
  std::set<std::string> names;
  gpunn::config::collect_parameters("$a+${b} and $unknown", names);
  CHECK(names == std::set<std::string>{"a", "b", "unknown"});
}
