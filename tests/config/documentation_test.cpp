#include "experiment/documentation.hpp"

#include "catch.hpp"
#include "common/files.hpp"
#include "config/layer_table.hpp"
#include "experiment/schema.hpp"

namespace {
std::string page() { return gpunn::read_text(std::string(GPUNN_SOURCE_DIR) + "/docs/experiments.md"); }
}  // namespace

TEST_CASE("docs/experiments.md has the table of keys") {
  INFO("put this between the markers:\n" << gpunn::config::keys_table());
  CHECK(page().find("-->\n" + gpunn::config::keys_table() + "<!-- end -->") != std::string::npos);
}

TEST_CASE("docs/experiments.md has the table of layers") {
  INFO("put this between the markers:\n" << gpunn::config::layers_table());
  CHECK(page().find("-->\n" + gpunn::config::layers_table() + "<!-- end -->") != std::string::npos);
}

TEST_CASE("each key says what it is for") {
  for (const auto& key : gpunn::config::schema()) {
    CAPTURE(key.path);
    CHECK(key.help.size() > 10);
    CHECK(gpunn::config::find_key(key.path) == &key);
  }
}
