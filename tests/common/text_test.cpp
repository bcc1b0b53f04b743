#include "common/text.hpp"

#include "catch.hpp"

using namespace gpunn;

TEST_CASE("a typing slip finds its word") {
  const std::vector<std::string> keys = {"learning_rate", "momentum", "nesterov", "weight_decay"};
  CHECK(near_matches("learning_rat", keys) == std::vector<std::string>{"learning_rate"});
  CHECK(near_matches("laerning_rate", keys).front() == "learning_rate");  // a swap
  CHECK(near_matches("Learning-Rate", keys).front() == "learning_rate");  // case and dashes
  CHECK(near_matches("momentun", keys).front() == "momentum");
  CHECK(near_matches("banana", keys).empty());
  CHECK(near_matches("", keys).empty());
  CHECK(near_matches(std::string(100000, 'a'), keys).empty());
}

TEST_CASE("the nearest word comes first") {
  CHECK(near_matches("conv3d", {"conv1dx", "conv2d", "linear"}) == std::vector<std::string>{"conv2d", "conv1dx"});
}

TEST_CASE("a suggestion names one word, or all") {
  CHECK(suggestion("relv", {"relu", "linear"}) == "; did you mean 'relu'?");
  CHECK(suggestion("xyz", {"relu", "linear"}) == "; known: relu, linear");
  CHECK(suggestion("xyz", {}).empty());
}

TEST_CASE("short words need to be nearly right") {
  CHECK(near_matches("lr", {"to", "lb"}).empty());
  CHECK(near_matches("ad", {"add"}).front() == "add");
}

TEST_CASE("text is put together") {
  CHECK(join({}, ", ").empty());
  CHECK(join({"a"}, ", ") == "a");
  CHECK(join({"a", "b", "c"}, " -> ") == "a -> b -> c");
  CHECK(in_quotes("x") == "'x'");
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
