// The first release of the contract, ABI 1.1, and this gpunn: old plugins in the new host, new plugins in an old host.
// tests/fixtures/abi_1/make.sh says what is kept of that time. `gpunn check` and a training run the old plugins in
// tests/cli/program/abi_test.py.
#include <gpunn/plugins.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "catch.hpp"
#include "plugins/abi_1_host.h"
#include "plugins/samples.hpp"

namespace {

std::string wrong_with(const std::filesystem::path& plugin) {
  const char* wrong = gpunn_abi_1_host(plugin.c_str());
  return wrong == nullptr ? "" : wrong;
}

}  // namespace

#if defined(__x86_64__)
TEST_CASE("a plugin that was built for the first release loads", "[plugins]") {
  const gpunn::PluginReport found =
      samples::report(std::string(GPUNN_SOURCE_DIR) + "/tests/fixtures/abi_1/libgpunn_backend_plain_c.so");
  INFO(found.detail);
  CHECK(found.status == gpunn::PluginStatus::ok);
  CHECK(found.abi_major == 1);
  CHECK(found.abi_minor == 1);
}
#endif

TEST_CASE("a plugin of this release serves a host of the first one", "[plugins]") {
  const std::vector<gpunn::PluginReport> found = gpunn::list_plugins();
  const auto cpu = std::ranges::find(found, "cpu", &gpunn::PluginReport::name);
  REQUIRE(cpu != found.end());
  CHECK(wrong_with(cpu->path) == "");
}

TEST_CASE("a host of the first release says what is wrong with a plugin", "[plugins]") {
  CHECK_THAT(wrong_with(samples::file("foreign", "no_symbol")), Contains("no gpunn_plugin_query_v1"));
  CHECK_THAT(wrong_with(samples::file("tables", "returns_null")), Contains("can't serve a host that speaks 1.1"));
}
