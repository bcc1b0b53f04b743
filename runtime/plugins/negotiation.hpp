#pragma once

#include <gpunn/abi.h>
#include <gpunn/plugins.hpp>

#include <string>

#include "plugins/loader.hpp"

namespace gpunn::plugins {

// The table that a library hands out, or why it can't be used.
struct Negotiated {
  PluginStatus status = PluginStatus::ok;
  std::string detail;
  int abi_major = 0, abi_minor = 0;  // of the plugin, as far as known
  gpunn_plugin table{};              // the host's own copy; what the plugin's struct_size does not cover is zero
};

// Asks a loaded library for its table and checks all that can be checked without calling anything else of it.
Negotiated negotiate(const Library& library);

// Fills `result` from a plugin's table.
void check_table(const void* table, Negotiated& result);

}  // namespace gpunn::plugins
