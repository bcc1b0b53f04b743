#pragma once

#include <string>
#include <vector>

#include "conformance/stream/delay.hpp"

namespace gpunn::conformance {

// One requirement on streams and events. `run` throws Error if it is not met; its result is information about a plugin
// that meets it.
struct StreamCheck {
  std::string member;  // of the table
  std::string name;
  std::string (*run)(const RawChain& chain, const Delay& delay);
};

std::vector<StreamCheck> event_checks();     // what events order, and the time between them
std::vector<StreamCheck> in_order_checks();  // copies and fills on one stream, directly and through wrappers

// --- For the checks ---

// Two streams of the bottom of the chain, as the plugin on top sees them.
struct StreamPair {
  explicit StreamPair(const RawChain& chain);
  RawStream a, b;          // of the plugin at the bottom
  RawStream a_top, b_top;  // wrapped by the plugin on top
};

// Bytes that identify their origin.
std::vector<std::byte> pattern(std::size_t size, int seed);
// Empty, or "byte 17: expected 0x2a, found 0xee" with how many differ.
std::string difference(const std::vector<std::byte>& expected, const std::vector<std::byte>& found);
// Throws Error with `what` and the difference, if there is one.
void demand_equal(const std::vector<std::byte>& expected, const std::vector<std::byte>& found, const std::string& what);

}  // namespace gpunn::conformance
