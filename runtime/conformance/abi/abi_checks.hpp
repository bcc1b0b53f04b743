#pragma once

#include <functional>
#include <string>
#include <vector>

#include "conformance/abi/raw_device.hpp"

namespace gpunn::conformance {

// One demand of abi.h on a plugin. `run` throws Error where it is not met.
struct AbiCheck {
  std::string member;  // of the table
  std::string name;
  std::function<void(const RawChain& chain)> run;
};

std::vector<AbiCheck> table_checks();   // names, functions, device information
std::vector<AbiCheck> memory_checks();  // allocation, copies, fills
std::vector<AbiCheck> stream_checks();  // streams and events
std::vector<AbiCheck> query_checks();   // op_query on what is unknown or makes no sense

// Throws Error with `message` where `holds` is false.
void demand(bool holds, const std::string& message);

}  // namespace gpunn::conformance
