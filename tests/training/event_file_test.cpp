// The bytes of event files; tensorboard_test.py has TensorBoard read whole ones.
#include "runs/event_file.hpp"

#include "catch.hpp"

using namespace gpunn::training;
using namespace std::string_literals;

namespace {

// Undoes the mask.
uint32_t crc32c(std::string_view bytes) {
  const uint32_t rotated = event_file::masked_crc32c(bytes) - 0xA282EAD8U;
  return rotated << 15 | rotated >> 17;
}

}  // namespace

TEST_CASE("the checksum is CRC-32C") {
  // The catalogue's check value, and the test patterns of RFC 3720, B.4.
  CHECK(crc32c("123456789") == 0xE3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising += c;
  CHECK(crc32c(rising) == 0x46DD794E);
}

TEST_CASE("a file begins as TensorFlow's do") {
  // The 12 bytes with which every event file of version 2 begins: a length of 24 and its checksum.
  const std::string first = event_file::version_record(1.5);
  REQUIRE(first.size() == 8 + 4 + 24 + 4);
  CHECK(first.substr(0, 12) == "\x18\0\0\0\0\0\0\0\xA3\x7F\x4B\x22"s);
  CHECK(first.substr(12, 24) == "\x09\0\0\0\0\0\0\xF8\x3F\x1A\x0D"s + "brain.Event:2");
}

TEST_CASE("a scalar is an event with a summary") {
  const std::string one = event_file::scalar_record(1.5, 300, {{"a", 0.5}, {"bc", -2}});
  const std::string message =
      "\x09\0\0\0\0\0\0\xF8\x3F"s  // wall_time 1.5
      "\x10\xAC\x02"s              // step 300
      "\x2A\x15"s                  // summary of 21 bytes
      "\x0A\x08\x0A\x01"
      "a\x15\0\0\0\x3F"s
      "\x0A\x09\x0A\x02"
      "bc\x15\0\0\0\xC0"s;
  CHECK(one == event_file::record(message));
  CHECK(one.size() == message.size() + 16);
}

TEST_CASE("a start says from which step on the past is void") {
  CHECK(event_file::start_record(1.5, 7) ==
        event_file::record("\x09\0\0\0\0\0\0\xF8\x3F"s + "\x10\x07" + "\x3A\x02\x08\x01"));
}
