#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/abi/raw_device.hpp"
#include "conformance/process/work.hpp"

namespace gpunn::conformance {

// One demand of abi.h on a plugin. `run` throws Error where it is not met, and notes what it tries where a plugin may
// crash of it.
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
