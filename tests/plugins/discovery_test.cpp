// Where plugins are looked for.
#include "plugins/discovery.hpp"

#include <algorithm>
#include <fstream>

#include <unistd.h>

#include "catch.hpp"
#include "plugins/samples.hpp"

namespace fs = std::filesystem;
using gpunn::PluginStatus;
using gpunn::plugins::discover;
using gpunn::plugins::has_plugin_name;
using gpunn::plugins::split_path_list;
using samples::file;

namespace {

long places_of(const std::vector<gpunn::plugins::Candidate>& found, const fs::path& path) {
  return std::count_if(found.begin(), found.end(), [&](const auto& candidate) { return candidate.path == path; });
}

void touch(const fs::path& path) { std::ofstream(path) << "nothing\n"; }

}  // namespace

TEST_CASE("names that are taken from a folder", "[plugins]") {
  CHECK(has_plugin_name("/somewhere/libgpunn_backend_cpu.so"));
  CHECK_FALSE(has_plugin_name("/somewhere/libgpunn_backend_.so"));
  CHECK_FALSE(has_plugin_name("/somewhere/libgpunn_backend_cpu.so.1"));
  CHECK_FALSE(has_plugin_name("/somewhere/gpunn_backend_cpu.so"));
  CHECK_FALSE(has_plugin_name("/somewhere/libgpunn.so"));
}

TEST_CASE("an empty entry of a path list is not the working directory", "[plugins]") {
  CHECK(split_path_list("").empty());
  CHECK(split_path_list(":").empty());
  CHECK(split_path_list("/a::/b:") == std::vector<fs::path>{"/a", "/b"});
}

TEST_CASE("the working directory is never searched", "[plugins]") {
  const samples::TemporaryFolder folder;
  const fs::path planted = folder.path() / "libgpunn_backend_planted.so";
  touch(planted);
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  {
    const samples::Environment path("GPUNN_PLUGIN_PATH", ":");
    CHECK(places_of(discover({}), planted) == 0);
  }
  {
    const samples::Environment path("GPUNN_PLUGIN_PATH", folder.path().string());
    CHECK(places_of(discover({}), planted) == 1);
  }
  fs::current_path(before);
}

TEST_CASE("folders are searched in the order in which they are named, each file once", "[plugins]") {
  const samples::TemporaryFolder first, second;
  touch(first.path() / "libgpunn_backend_b.so");
  touch(first.path() / "libgpunn_backend_a.so");
  touch(first.path() / "readme.txt");
  touch(second.path() / "libgpunn_backend_c.so");
  fs::create_symlink(first.path() / "libgpunn_backend_a.so", second.path() / "libgpunn_backend_link.so");
  fs::create_hard_link(first.path() / "libgpunn_backend_b.so", second.path() / "libgpunn_backend_hard.so");
  fs::create_directory(second.path() / "libgpunn_backend_folder.so");

  const samples::Environment path("GPUNN_PLUGIN_PATH", second.path().string() + ":" + first.path().string());
  const auto found = discover({first.path()});
  REQUIRE(found.size() >= 3);
  CHECK(found[0].path == first.path() / "libgpunn_backend_a.so");
  CHECK(found[1].path == first.path() / "libgpunn_backend_b.so");
  CHECK(found[2].path == second.path() / "libgpunn_backend_c.so");
  for (const char* left_out : {"libgpunn_backend_link.so", "libgpunn_backend_hard.so", "libgpunn_backend_folder.so"}) {
    CHECK(places_of(found, second.path() / left_out) == 0);
  }
}

TEST_CASE("a place that does not exist is told", "[plugins]") {
  const auto reports = gpunn::list_plugins({"/nowhere/at/all"});
  REQUIRE_FALSE(reports.empty());
  CHECK(reports.front().path == "/nowhere/at/all");
  CHECK(reports.front().status == PluginStatus::not_a_plugin);
  CHECK_THAT(reports.front().detail, Contains("No such file"));
}

TEST_CASE("a file that is named may be called anything", "[plugins]") {
  const samples::TemporaryFolder folder;
  const fs::path copy = folder.path() / "mine.so";
  fs::copy_file(file("overlays", "small_base"), copy);
  CHECK(samples::report(copy).name == "small_base");
}

TEST_CASE("a second registry neither loads nor probes again", "[plugins]") {
  const gpunn::plugins::PluginRegistry first({file("faulty", "faulty")});
  const auto plugin = first.chain("faulty").front();
  const Control& control = samples::control(*plugin);
  const int32_t probes = control.probes;
  for (int i = 0; i < 3; ++i) {
    const gpunn::plugins::PluginRegistry again({file("faulty", "faulty")});
    CHECK(again.chain("faulty").front() == plugin);
  }
  CHECK(control.probes == probes);
}

TEST_CASE("a backend that is not asked for is not probed", "[plugins]") {
  const gpunn::plugins::PluginRegistry registry({samples::folder("unasked"), samples::folder("overlays")});
  CHECK(registry.chain("only_relu").size() == 2);
  const auto loads = std::ranges::find(registry.files(), std::string("unasked"), &gpunn::PluginReport::name);
  REQUIRE(loads != registry.files().end());
  CHECK(loads->status == gpunn::PluginStatus::ok);
  CHECK(loads->devices == 0);

  const Control& control = samples::control(*registry.chain("unasked").front());
  CHECK(control.probes == 1);
  registry.reports();
  CHECK(control.probes == 1);
}
