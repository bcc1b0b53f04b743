// What is reported of each kind of file, and that none of them keeps another from loading.
#include <fstream>

#include "catch.hpp"
#include "plugins/samples.hpp"

using gpunn::PluginReport;
using gpunn::PluginStatus;
using samples::file;
using samples::report;

namespace {

struct Expected {
  const char* folder;
  const char* name;
  PluginStatus status;
  const char* detail;
};

}  // namespace

TEST_CASE("a file that can't serve says why", "[plugins]") {
  const auto expected =
      GENERATE(Expected{"foreign", "no_symbol", PluginStatus::not_a_plugin, "does not export gpunn_plugin_query_v1"},
               Expected{"foreign", "other_major", PluginStatus::abi_mismatch,
                        "plugin speaks 2, host speaks 1; build it again against the headers"},
               Expected{"tables", "table_of_major_2", PluginStatus::abi_mismatch, "plugin speaks 2.1, host speaks 1"},
               Expected{"tables", "returns_null", PluginStatus::abi_mismatch, "returned NULL"},
               Expected{"dependency", "needs_absent", PluginStatus::dependency_missing, "libgpunn_test_absent.so"},
               Expected{"tables", "null_name", PluginStatus::invalid, "its name is NULL"},
               Expected{"tables", "bad_name", PluginStatus::invalid, "only [a-z0-9_]"},
               Expected{"tables", "bad_base", PluginStatus::invalid, "the name of its base has character 46"},
               Expected{"tables", "null_function", PluginStatus::invalid, "required function event_elapsed is NULL"},
               Expected{"tables", "half_capture", PluginStatus::invalid, "all four or none"},
               Expected{"tables", "tiny_table", PluginStatus::invalid, "says that it has 16 bytes"},
               Expected{"tables", "huge_table", PluginStatus::invalid, "says that it has 4294967280 bytes"},
               Expected{"tables", "query_throws", PluginStatus::invalid, "threw an exception: thrown in the query"},
               Expected{"tables", "probe_throws", PluginStatus::invalid, "thrown in probe"},
               Expected{"tables", "negative_devices", PluginStatus::invalid, "reported -3 devices"},
               Expected{"tables", "no_device", PluginStatus::no_device, "the sample has no driver"},
               Expected{"tables", "zero_devices", PluginStatus::no_device, "found no device"});
  const PluginReport found = report(file(expected.folder, expected.name));
  INFO(expected.name << ": " << found.detail);
  CHECK(gpunn::name_of(found.status) == gpunn::name_of(expected.status));
  CHECK_THAT(found.detail, Contains(expected.detail));
}

TEST_CASE("the loader's own words are kept", "[plugins]") {
  const PluginReport found = report(file("dependency", "needs_absent"));
  CHECK_THAT(found.detail, Contains("cannot open shared object file") && Contains("; install that library"));
}

TEST_CASE("plugins of an older and a newer minor version work", "[plugins]") {
  const PluginReport older = report(file("tables", "older_minor"));
  CHECK(older.status == PluginStatus::ok);
  const gpunn::plugins::PluginRegistry registry({file("tables", "older_minor"), file("tables", "newer_minor")});
  const gpunn_plugin& table = registry.chain("older_minor").front()->table();
  // What lay beyond its size was 0xee.
  CHECK(table.capture_begin == nullptr);
  CHECK(table.extension == nullptr);
  CHECK_FALSE(registry.chain("older_minor").front()->can_capture());

  const PluginReport newer = report(file("tables", "newer_minor"));
  CHECK(newer.status == PluginStatus::ok);
  CHECK(newer.abi_minor == 7);
  CHECK(registry.chain("newer_minor").front()->table().extension != nullptr);
}

TEST_CASE("a report holds what the plugin says of itself", "[plugins]") {
  const PluginReport found = report(file("overlays", "only_relu"));
  CHECK(found.status == PluginStatus::ok);
  CHECK(found.name == "only_relu");
  CHECK(found.version == "1.2");
  CHECK(found.build == "a sample of the tests");
  CHECK(found.base == "small_base");
  CHECK(found.abi_major == 1);
  CHECK(found.abi_minor == 1);
  CHECK(found.priority == 5);
  CHECK(found.devices == 2);
}

TEST_CASE("files that are no shared objects", "[plugins]") {
  const samples::TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& content) {
    const auto path = folder.path() / ("libgpunn_backend_" + name + ".so");
    std::ofstream(path, std::ios::binary) << content;
    return path;
  };
  std::ifstream stream(file("overlays", "small_base"), std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(stream), {}};
  REQUIRE(good.size() > 4096);

  const auto text = report(write("text", "this is not a plugin\n"));
  CHECK(text.status == PluginStatus::not_a_plugin);
  CHECK_THAT(text.detail, Contains("does not begin with the ELF mark"));
  CHECK(report(write("empty", "")).status == PluginStatus::not_a_plugin);

  std::string foreign = good;
  foreign[18] = static_cast<char>(0xb7);  // e_machine: aarch64, or x86_64 where the test itself is of aarch64
  foreign[19] = 0;
  if (foreign == good) foreign[18] = 0x3e;
  const std::string other = foreign[18] == 0x3e ? "x86_64" : "aarch64";
  const auto found_foreign = report(write("foreign", foreign));
  CHECK(found_foreign.status == PluginStatus::not_a_plugin);
  CHECK_THAT(found_foreign.detail,
             Contains("built for another machine: it is of " + other) && Contains("; build it for "));
  foreign[18] = static_cast<char>(0xfe);  // an unused number
  CHECK_THAT(report(write("unheard_of", foreign)).detail, Contains("it is of ELF machine 254"));
  std::string small_class = good;
  small_class[4] = 1;  // 32 bits
  CHECK_THAT(report(write("small_class", small_class)).detail, Contains("another machine"));

  // However much of it is there, a truncated library is refused, and the process lives.
  for (const std::size_t length :
       {std::size_t{3}, std::size_t{63}, std::size_t{100}, std::size_t{1000}, good.size() / 4, good.size() / 2}) {
    const auto found = report(write("truncated_" + std::to_string(length), good.substr(0, length)));
    INFO(length << " of " << good.size() << " bytes: " << found.detail);
    CHECK(found.status == PluginStatus::not_a_plugin);
    CHECK_FALSE(found.detail.empty());
    if (length >= 100) CHECK_THAT(found.detail, Contains("truncated: ") && Contains("copy or build it again"));
  }
  CHECK(report(write("whole", good)).status == PluginStatus::ok);
}

TEST_CASE("the running program is no plugin", "[plugins]") {
  const auto program = std::filesystem::read_symlink("/proc/self/exe");
  const auto found = report(program);
  CHECK(found.status == PluginStatus::not_a_plugin);
}

TEST_CASE("a bad plugin keeps no good one from loading", "[plugins]") {
  const auto reports = gpunn::list_plugins({samples::folder("tables"), samples::folder("foreign"),
                                            samples::folder("dependency"), samples::folder("overlays")});
  int good = 0;
  for (const PluginReport& found : reports) {
    CHECK((found.status == PluginStatus::ok) == found.detail.empty());
    if (found.path.parent_path() == samples::folder("overlays") && found.status == PluginStatus::ok) ++good;
  }
  CHECK(good == 3);
}

#ifdef GPUNN_TEST_OTHER_COMPILER
TEST_CASE("a plugin of another compiler loads", "[plugins]") {
  const auto found = report(file("other_compiler", "other_compiler"));
  INFO(found.detail);
  CHECK(found.status == PluginStatus::ok);
  CHECK(found.devices == 2);
}
#endif

TEST_CASE("two plugins may use one class name", "[plugins]") {
  CHECK(report(file("twins", "twin_1")).devices == 1);
  const PluginReport second = report(file("twins", "twin_2"));
  CHECK(second.name == "twin_2");
  CHECK(second.version == "twin_2");
  CHECK(second.devices == 2);
}
