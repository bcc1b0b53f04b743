#include "conformance/stream/ordering.hpp"

#include <gpunn/error.hpp>

#include <cstdio>

namespace gpunn::conformance {

StreamPair::StreamPair(const RawChain& chain)
    : a(chain.bottom()), b(chain.bottom()), a_top(chain.top(), a), b_top(chain.top(), b) {}

std::vector<std::byte> pattern(std::size_t size, int seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i * 131 + i / 256 + static_cast<std::size_t>(seed) * 59 + 7);
  }
  return bytes;
}

std::string difference(const std::vector<std::byte>& expected, const std::vector<std::byte>& found) {
  std::size_t first = expected.size(), wrong = 0;
  for (std::size_t i = expected.size(); i-- > 0;) {
    if (expected[i] == found[i]) continue;
    first = i;
    ++wrong;
  }
  if (wrong == 0) return "";
  char text[128];
  std::snprintf(text, sizeof(text), "byte %zu: expected 0x%02x, found 0x%02x; %zu of %zu bytes are off", first,
                std::to_integer<unsigned>(expected[first]), std::to_integer<unsigned>(found[first]), wrong,
                expected.size());
  return text;
}

void demand_equal(const std::vector<std::byte>& expected, const std::vector<std::byte>& found,
                  const std::string& what) {
  const std::string off = difference(expected, found);
  if (!off.empty()) throw Error(what + ": " + off);
}

}  // namespace gpunn::conformance
