// Which plugins serve a name, and why one can't.
#include <algorithm>

#include "catch.hpp"
#include "plugins/samples.hpp"

using gpunn::ExitCode;
using gpunn::plugins::PluginRegistry;
using samples::error_of;
using samples::file;
using samples::folder;

namespace {

std::vector<std::string> names(const PluginRegistry& registry, const std::string& name) {
  std::vector<std::string> result;
  for (const auto& plugin : registry.chain(name)) result.push_back(plugin->name());
  return result;
}

std::string refusal(const PluginRegistry& registry, const std::string& name) {
  ExitCode code = ExitCode::done;
  std::string text = error_of([&] { registry.chain(name); }, &code);
  CHECK(code == ExitCode::missing);
  return text;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a chain is the overlay and its bases", "[plugins]") {
  const PluginRegistry registry({folder("overlays")});
  CHECK(names(registry, "small_base") == Names{"small_base"});
  CHECK(names(registry, "only_relu") == Names{"only_relu", "small_base"});
  CHECK(names(registry, "second_storey") == Names{"second_storey", "only_relu", "small_base"});
}

TEST_CASE("alternatives follow the plugin that names them, where they can serve", "[plugins]") {
  using gpunn::plugins::Alternatives;
  const PluginRegistry registry({folder("overlays"), folder("alternatives")});
  CHECK(names(registry, "racer") == Names{"racer", "small_base"});
  Names chain;
  for (const auto& plugin : registry.chain("racer", Alternatives::included)) chain.push_back(plugin->name());
  CHECK(chain == Names{"racer", "rival", "far_rival", "small_base"});
}

TEST_CASE("a path names a plugin too", "[plugins]") {
  const PluginRegistry registry({folder("overlays")});
  CHECK(names(registry, file("overlays", "only_relu").string()) == Names{"only_relu", "small_base"});
  // Its bases still come from the registry; it need not be in there itself.
  CHECK(names(registry, file("faulty", "faulty").string()) == Names{"faulty"});
  CHECK_THAT(refusal(registry, "./no_such_file.so"), Contains("there is no file"));
  CHECK_THAT(refusal(registry, file("tables", "null_name").string()), Contains("INVALID") && Contains("name is NULL"));
}

TEST_CASE("a backend that is not there is told with what is", "[plugins]") {
  const PluginRegistry registry({folder("overlays"), file("tables", "no_device")});
  const std::string slip = refusal(registry, "smal_base");
  CHECK_THAT(slip, Contains("'smal_base' was not found") && Contains("did you mean 'small_base'?"));
  const std::string far = refusal(registry, "quantum_computer");
  CHECK_THAT(far, Contains("only_relu") && Contains("second_storey") && Contains("GPUNN_PLUGIN_PATH"));
  CHECK_THAT(far, Contains("NO_DEVICE: the sample has no driver"));
}

TEST_CASE("a backend that can't serve says why", "[plugins]") {
  const PluginRegistry registry({folder("tables"), folder("foreign"), folder("dependency"), folder("orphans")});
  CHECK_THAT(refusal(registry, "no_device"), Contains("NO_DEVICE") && Contains("the sample has no driver"));
  // A file that told no name is known by its file's.
  CHECK_THAT(refusal(registry, "other_major"), Contains("ABI_MISMATCH") && Contains("plugin speaks 2, host speaks 1"));
  CHECK_THAT(refusal(registry, "needs_absent"), Contains("DEPENDENCY_MISSING") && Contains("libgpunn_test_absent.so"));
  CHECK_THAT(refusal(registry, "no_symbol"), Contains("NOT_A_PLUGIN"));
}

TEST_CASE("a base must be there, and no cycle", "[plugins]") {
  const PluginRegistry registry({folder("orphans"), file("tables", "no_device")});
  CHECK_THAT(refusal(registry, "orphan"), Contains("'nowhere', the base of 'orphan', was not found"));
  CHECK_THAT(refusal(registry, "cycle_a"),
             Contains("cycle, cycle_a -> cycle_b -> cycle_a; one of them has to do without"));
  CHECK_THAT(refusal(registry, "on_no_device"),
             Contains("'no_device', the base of 'on_no_device', can't serve") && Contains("has no driver"));
}

TEST_CASE("a name that two files bear is an error", "[plugins]") {
  const PluginRegistry registry({folder("clash_1"), folder("clash_2"), folder("overlays")});
  int clashes = 0;
  for (const auto& report : registry.reports()) {
    if (report.name != "clash") continue;
    ++clashes;
    CHECK(report.status == gpunn::PluginStatus::name_clash);
  }
  CHECK(clashes == 2);
  CHECK_THAT(refusal(registry, "clash"),
             Contains(file("clash_1", "clash").string()) && Contains(file("clash_2", "clash").string()));
  CHECK_THAT(refusal(registry, "clash"), Contains("remove all but one") && Contains("or name the backend by its path"));
  // Each can still be used by its path, and other plugins are not affected.
  CHECK(names(registry, file("clash_2", "clash").string()) == Names{"clash"});
  CHECK(names(registry, "only_relu").size() == 2);
}

TEST_CASE("of one name the plugin that is found first serves", "[plugins]") {
  const auto served = [](const PluginRegistry& registry, const std::string& first, const std::string& second) {
    CHECK(registry.chain("clash").front()->path() == file(first, "clash"));
    CHECK_THAT(registry.notice(*registry.chain("clash").front()),
               Contains(file(first, "clash").string() + ", which is searched first") &&
                   Contains("left out is " + file(second, "clash").string()));
    const std::vector<gpunn::PluginReport> reports = registry.reports();
    const auto shadowed = std::ranges::find(reports, file(second, "clash"), &gpunn::PluginReport::path);
    REQUIRE(shadowed != reports.end());
    CHECK(shadowed->status == gpunn::PluginStatus::shadowed);
    CHECK_THAT(shadowed->detail, Contains("'clash' is " + file(first, "clash").string()));
  };
  {
    const samples::Environment path("GPUNN_PLUGIN_PATH", folder("clash_1").string());
    served(PluginRegistry({folder("clash_2")}), "clash_2", "clash_1");
    // It is the base of others, too, and another is still used by its path.
    const PluginRegistry registry({file("clash_2", "clash")});
    CHECK(registry.chain(file("on_clash", "on_clash").string()).back()->path() == file("clash_2", "clash"));
    const auto by_path = registry.chain(file("clash_1", "clash").string()).front();
    CHECK(by_path->path() == file("clash_1", "clash"));
    CHECK(registry.notice(*by_path).empty());
    // Two that are named clash, whatever comes after them.
    CHECK_THAT(refusal(PluginRegistry({file("clash_2", "clash"), file("clash_over_clash", "clash")}), "clash"),
               Contains("NAME_CLASH") && Contains(file("clash_over_clash", "clash").string()));
  }
  const samples::Environment path("GPUNN_PLUGIN_PATH", folder("clash_1").string() + ":" + folder("clash_2").string());
  served(PluginRegistry(), "clash_1", "clash_2");
}

TEST_CASE("a path says which of two of one name is meant", "[plugins]") {
  const PluginRegistry registry({folder("clash_1")});
  CHECK(registry.chain("clash").front()->path() == file("clash_1", "clash"));
  CHECK(registry.chain(file("clash_2", "clash").string()).front()->path() == file("clash_2", "clash"));
  // One and the same file is no second one, whichever way it is named.
  CHECK(
      registry.chain((folder("clash_1") / ".." / "clash_1" / file("", "clash").filename()).string()).front()->path() ==
      file("clash_1", "clash"));
  CHECK_THAT(refusal(registry, file("clash_over_clash", "clash").string()),
             Contains("cycle, clash -> clash;") && Contains("or to have another name"));
}

TEST_CASE("a base that two files bear the name of", "[plugins]") {
  const std::string overlay = file("on_clash", "on_clash").string();
  CHECK(names(PluginRegistry({folder("clash_1")}), overlay) == Names{"on_clash", "clash"});
  const std::string text = refusal(PluginRegistry({folder("clash_1"), folder("clash_2")}), overlay);
  CHECK_THAT(text, Contains("'clash', the base of 'on_clash', can't serve") && Contains("NAME_CLASH") &&
                       Contains(file("clash_2", "clash").string()) && Contains("remove all but one"));
  CHECK_THAT(text, !Contains("by its path"));
}

TEST_CASE("auto takes the largest priority among those that work", "[plugins]") {
  // Orphans and cycles have priority 9, only_relu 5. A backend of the project may be found beside the test.
  const PluginRegistry registry({folder("orphans"), folder("overlays"), folder("tables")});
  const auto best = registry.chain("auto");
  int largest = -1000;
  for (const auto& report : registry.reports()) {
    if (report.status != gpunn::PluginStatus::ok || report.path.parent_path() == folder("orphans")) continue;
    largest = std::max(largest, report.priority);
  }
  CHECK(best.front()->table().priority == largest);
  CHECK(best.front()->path().parent_path() != folder("orphans"));
  CHECK(largest >= 5);
}

TEST_CASE("shutdown comes once, overlays first", "[plugins]") {
  const PluginRegistry registry({folder("overlays"), file("throwing", "throwing"), file("faulty", "faulty")});
  const auto chain = registry.chain("second_storey");
  REQUIRE(chain.size() == 3);
  for (const auto& plugin : chain) samples::control(*plugin) = Control{};
  // A plugin that throws, with or without plugin.hpp, does not affect the others.
  const samples::Controlled faulty(*registry.chain("faulty").front());
  samples::set(faulty->throw_in, "shutdown");
  gpunn::plugins::shutdown_plugins();
  gpunn::plugins::shutdown_plugins();
  CHECK(faulty->shutdowns == 1);
  for (const auto& plugin : chain) CHECK(samples::control(*plugin).shutdowns == 1);
  CHECK(samples::control(*chain[0]).shutdown_time <= samples::control(*chain[1]).shutdown_time);
  CHECK(samples::control(*chain[1]).shutdown_time <= samples::control(*chain[2]).shutdown_time);
}
