#include "data/published/idx.hpp"

#include <cstring>

#include "catch.hpp"
#include "files.hpp"

using gpunn::data::read_idx;
using test::gzip;
using test::idx;
using test::write_file;

TEST_CASE("an IDX file is read the same, plain or packed") {
  const test::TemporaryFolder folder;
  const std::string values = test::counting_bytes(5 * 7 * 3);
  const std::string bytes = idx({5, 7, 3}, values);
  const std::vector<std::string> ways = {bytes, gzip(bytes), gzip(bytes, 0),
                                         gzip(bytes.substr(0, 9)) + gzip(bytes.substr(9))};
  write_file(folder / "x", ways[GENERATE(0U, 1U, 2U, 3U)]);
  const gpunn::data::IdxArray array = read_idx(folder / "x", 3);
  CHECK(array.type == gpunn::TensorType{gpunn::DType::u8, {5, 7, 3}});
  REQUIRE(array.values.size() == values.size());
  CHECK(std::memcmp(array.values.data(), values.data(), values.size()) == 0);
}

TEST_CASE("a packed IDX file that packs better than usual grows in steps") {
  const test::TemporaryFolder folder;
  std::string values(std::size_t{9} << 20, '\0');
  values.back() = 77;
  write_file(folder / "x.gz", gzip(idx({9, 1024, 1024}, values)));
  const gpunn::data::IdxArray array = read_idx(folder / "x.gz", 3);
  REQUIRE(array.values.size() == values.size());
  CHECK(array.values.back() == std::byte{77});
  CHECK_THROWS_WITH(read_idx(folder / "x.gz", 3, 1 << 20), Contains("the limit is 1048576"));
}

TEST_CASE("an IDX file with no rows is empty, not an error") {
  const test::TemporaryFolder folder;
  write_file(folder / "x", idx({0, 28, 28}, ""));
  CHECK(read_idx(folder / "x", 3).values.empty());
}

TEST_CASE("what is wrong with an IDX file is told with file, place, expected and found") {
  const test::TemporaryFolder folder;
  const std::string good = idx({4, 2, 2}, test::counting_bytes(16));
  const auto read = [&](const std::string& contents) {
    write_file(folder / "bad", contents);
    return read_idx(folder / "bad", 3);
  };
  SECTION("missing") {
    CHECK_THROWS_WITH(read_idx(folder / "none", 3), Contains("none") && Contains("No such file"));
    CHECK(test::code_of([&] { read_idx(folder / "none", 3); }) == gpunn::ExitCode::missing);
    CHECK_THROWS_WITH(read_idx(folder.path(), 3), Contains("it is a folder"));
  }
  SECTION("empty and headless") {
    CHECK_THROWS_WITH(read(""), Contains("bad") && Contains("ends inside its 4-byte magic number"));
    CHECK_THROWS_WITH(read(good.substr(0, 3)), Contains("byte 3") && Contains("magic number"));
    CHECK_THROWS_WITH(read(good.substr(0, 10)), Contains("byte 10") && Contains("inside dimension 1"));
  }
  SECTION("wrong magic") {
    CHECK_THROWS_WITH(read("\x89PNG" + good), Contains("byte 0") && Contains("0x89"));
    CHECK_THROWS_WITH(read(idx({4, 2, 2}, std::string(64, 'x'), 0x0D)), Contains("byte 2") && Contains("32-bit float"));
    CHECK_THROWS_WITH(read(idx({4}, "abcd")), Contains("byte 3") && Contains("found 1") && Contains("images have 3"));
  }
  SECTION("truncated") {
    CHECK_THROWS_WITH(read(good.substr(0, good.size() - 1)), Contains("[4, 2, 2], 16 bytes") && Contains("has 15"));
    CHECK_THROWS_WITH(read(gzip(good.substr(0, good.size() - 1))), Contains("ends after 15 of the 16 bytes"));
  }
  SECTION("longer than its header says") {
    CHECK_THROWS_WITH(read(good + "z"), Contains("has 17") && Contains("more than it should"));
    CHECK_THROWS_WITH(read(gzip(good + "z")), Contains("promises 16 bytes of data, and more follow"));
  }
  SECTION("a header that promises what no memory holds") {
    CHECK_THROWS_WITH(read(idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "x")), Contains("more than any file holds"));
    CHECK_THROWS_WITH(read(idx({0x7FFFFFFF, 0x10000, 1}, "x")), Contains("the file has 1"));
    CHECK_THROWS_WITH(read(gzip(idx({0x7FFFFFFF, 0x10000, 1}, "x"))), Contains("can't hold that"));
    // Within deflate's best ratio, but not there: it must not be allocated either, which growing in steps sees to.
    const std::string noise = test::counting_bytes(100000);
    CHECK_THROWS_WITH(read(gzip(idx({100, 1000, 1000}, noise))), Contains("ends after 100000 of the 100000000"));
  }
  SECTION("a gzip bomb behind a modest header") {
    CHECK_THROWS_WITH(read(gzip(idx({4, 2, 2}, std::string(std::size_t{64} << 20, '\0')))), Contains("more follow"));
  }
  SECTION("a damaged gzip stream") {
    const std::string packed = gzip(idx({10, 100, 100}, test::counting_bytes(100000)));
    CHECK_THROWS_WITH(read(packed.substr(0, packed.size() / 2)), Contains("the gzip stream ends early"));
    CHECK_THROWS_WITH(read(packed.substr(0, packed.size() - 4)), Contains("the gzip stream ends early"));
    std::string flipped = packed;
    flipped[flipped.size() - 6] ^= 1;  // in the check sum
    CHECK_THROWS_WITH(read(flipped), Contains("corrupt gzip data") && Contains("incorrect data check"));
    CHECK_THROWS_WITH(read(packed + "trailing"), Contains("corrupt gzip data"));
  }
}

TEST_CASE("a damaged byte anywhere in an IDX file never does worse than an error") {
  const test::TemporaryFolder folder;
  const std::string plain = idx({3, 4, 5}, test::counting_bytes(60));
  for (const std::string& whole : {plain, gzip(plain)}) {
    int refused = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const char mask : {'\x01', '\x80', '\xff'}) {
        std::string bytes = whole;
        bytes[at] ^= mask;
        write_file(folder / "x", bytes);
        std::size_t values = 60;
        try {
          values = read_idx(folder / "x", 3).values.size();
        } catch (const gpunn::Error&) {
          ++refused;
        }
        CHECK(values == 60);
      }
    }
    CHECK(refused > 30);
  }
}
