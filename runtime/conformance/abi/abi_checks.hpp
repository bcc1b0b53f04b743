#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/abi/raw_device.hpp"
#include "conformance/process/work.hpp"

namespace gpunn::conformance {

// One requirement of abi.h. `run` throws Error if the plugin does not meet it, and notes what it tries before a call
// that may crash.
struct AbiCheck {
  AbiCheck(std::string of, std::string what, std::function<void(const RawChain&, const Note&)> check)
      : member(std::move(of)), name(std::move(what)), run(std::move(check)) {}
  AbiCheck(std::string of, std::string what, void (*check)(const RawChain&))
      : AbiCheck(std::move(of), std::move(what), [check](const RawChain& chain, const Note&) { check(chain); }) {}

  std::string member;  // of the table
  std::string name;
  int32_t op = 0;  // of the catalogue, where it is about one
  std::function<void(const RawChain& chain, const Note& note)> run;
};

std::vector<AbiCheck> table_checks();   // names, functions, device information
std::vector<AbiCheck> memory_checks();  // allocation, copies, fills
std::vector<AbiCheck> stream_checks();  // streams and events
std::vector<AbiCheck> query_checks();   // op_query on what is unknown or makes no sense

std::vector<AbiCheck> contract_checks();  // op_query on what is nearly right, by hosts of several versions

// Throws Error with `message` where `holds` is false.
void demand(bool holds, const std::string& message);

}  // namespace gpunn::conformance
