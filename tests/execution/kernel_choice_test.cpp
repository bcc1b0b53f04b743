// Kernels that are wanted by their names.
#include <array>

#include "catch.hpp"
#include "execution/fixture.hpp"

using namespace fixture;
using gpunn::execution::abi_tensor;
using gpunn::execution::NamedKernel;
using gpunn::execution::Placement;
using samples::error_of;

namespace {

std::vector<std::string> names(const std::vector<NamedKernel>& kernels) {
  std::vector<std::string> result;
  for (const NamedKernel& kernel : kernels) result.push_back(std::to_string(kernel.level) + " " + kernel.name);
  return result;
}

// The number of the kernel of "named" that runs a RELU of so many elements.
int run(Backend& backend, int64_t count, Control& control) {
  const TensorType type = floats({count});
  std::vector<float> values(static_cast<std::size_t>(count), -1.0F);
  auto buffer = backend.allocate(type.bytes());
  const Placement placement = backend.place(relu(type));
  auto workspace = backend.allocate(placement.workspace_bytes);
  backend.upload(buffer.data(), values.data(), type.bytes());
  const gpunn_tensor tensor = abi_tensor(type, buffer.data());
  control.last_kernel = -1;
  backend.create(relu(type), placement).enqueue({&tensor, 1}, {&tensor, 1}, workspace.data(), "RELU");
  return control.last_kernel;
}

}  // namespace

TEST_CASE("a wanted kernel runs what it serves, the plugin's own choice the rest", "[execution]") {
  const auto control = controlled("named");
  Backend backend(registry(), "named", {.kernels = {"relu:2"}});
  const Placement even = backend.place(relu(floats({4})));
  CHECK(even.kernel == "relu:2");
  CHECK(even.workspace_bytes == 128);
  CHECK(run(backend, 4, *control) == 2);
  CHECK(backend.place(relu(floats({5}))).kernel.empty());
  CHECK(run(backend, 5, *control) == 0);
  require_wanted_kernels(std::array<const Backend*, 1>{&backend}, {"relu:2"});

  backend.want_kernels({});
  CHECK(run(backend, 4, *control) == 0);
}

TEST_CASE("of several wanted kernels the first that serves is taken", "[execution]") {
  const auto control = controlled("named");
  Backend backend(registry(), "named", {.kernels = {"relu:2", "relu:1"}});
  CHECK(run(backend, 4, *control) == 2);
  CHECK(run(backend, 5, *control) == 1);
  Backend other(registry(), "named", {.kernels = {"relu:1", "relu:2"}});
  CHECK(run(other, 4, *control) == 1);
  CHECK_THAT(error_of([&] {
               require_wanted_kernels(std::array<const Backend*, 1>{&other}, {"relu:1", "relu:2"});
             }),
             Contains("another that is wanted is named before it"));
}

TEST_CASE("the names are told by plugin, whatever is wanted", "[execution]") {
  const auto control = controlled("named");
  const Backend backend(registry(), "relu_on_named", {.kernels = {"relu:1"}});
  CHECK(names(backend.kernels(relu(floats({4})))) == std::vector<std::string>{"1 relu:1", "1 relu:2", "1 relu:3"});
  CHECK(names(backend.kernels(relu(floats({5})))) == std::vector<std::string>{"1 relu:1", "1 relu:3"});
  CHECK(backend.kernels(softmax(floats({2, 2}))).empty());
}

TEST_CASE("a wanted kernel of a base goes before what the overlay would choose", "[execution]") {
  const auto control = controlled("named");
  CHECK(Backend(registry(), "relu_on_named").place(relu(floats({4}))).level == 0);
  const Backend backend(registry(), "relu_on_named", {.kernels = {"relu:1"}});
  const Placement placement = backend.place(relu(floats({4})));
  CHECK(placement.level == 1);
  CHECK(placement.kernel == "relu:1");
}

TEST_CASE("a wanted kernel that no op takes is an error with the names known", "[execution]") {
  const auto control = controlled("named");
  const Backend backend(registry(), "named", {.kernels = {"relu:9"}});
  CHECK(backend.place(relu(floats({4}))).kernel.empty());
  gpunn::ExitCode code = gpunn::ExitCode::done;
  CHECK_THAT(error_of([&] { require_wanted_kernels(std::array<const Backend*, 1>{&backend}, {"relu:9"}); }, &code),
             Contains("no op takes kernel 'relu:9' of 'named'") && Contains("'relu:1'"));
  CHECK(code == gpunn::ExitCode::usage);

  const auto unnamed = controlled("small_base");
  const Backend plain(registry(), "small_base", {.kernels = {"relu:1"}});
  CHECK(plain.place(relu(floats({4}))).level == 0);
  CHECK_THAT(error_of([&] { require_wanted_kernels(std::array<const Backend*, 1>{&plain}, {"relu:1"}); }),
             Contains("its kernels for these ops have no names"));
  require_wanted_kernels(std::array<const Backend*, 1>{&plain}, {"relu:1"}, true);
}

TEST_CASE("of two backends it may be either that has a wanted kernel", "[execution]") {
  const auto control = controlled("named");
  const auto unnamed = controlled("small_base");
  const Backend plain(registry(), "small_base", {.kernels = {"relu:1", "relu:9"}});
  const Backend named(registry(), "named", {.kernels = {"relu:1", "relu:9"}});
  const std::array<const Backend*, 2> both{&plain, &named};
  plain.place(relu(floats({4})));
  named.place(relu(floats({4})));
  require_wanted_kernels(both, {"relu:1"});
  CHECK_THAT(error_of([&] {
               require_wanted_kernels(both, {"relu:1", "relu:9"});
             }),
             Contains("no op takes kernel 'relu:9' of 'small_base' or 'named'") && Contains("'relu:1'"));
}

TEST_CASE("a plugin that names a kernel and then refuses it is at fault", "[execution]") {
  const auto control = controlled("named");
  const Backend backend(registry(), "named", {.kernels = {"relu:3"}});
  CHECK(backend.place(relu(floats({4}))).kernel == "relu:3");
  control->fail_status = GPUNN_UNSUPPORTED;
  // Asked without a wish it is still listed: its query looks at the wish.
  CHECK_THAT(error_of([&] { backend.place(relu(floats({4}))); }),
             Contains("names kernel 'relu:3' for RELU") && Contains("not today"));
}

TEST_CASE("a plugin of minor version 0 is never asked for a kernel by name", "[execution]") {
  const auto control = controlled("minor_0");
  gpunn::ExitCode code = gpunn::ExitCode::done;
  CHECK_THAT(error_of([] { Backend(registry(), "minor_0", {.kernels = {"relu:1"}}); }, &code),
             Contains("kernel 'relu:1' can't be had of 'minor_0'") && Contains("minor version 0"));
  CHECK(code == gpunn::ExitCode::missing);
  const Backend lenient(registry(), "minor_0", {.kernels = {"relu:1"}, .kernels_where_named = true});
  CHECK(lenient.options().kernels.empty());
  Backend backend(registry(), "minor_0");
  CHECK(backend.kernels(relu(floats({4}))).empty());
  CHECK_THAT(error_of([&] { backend.create(relu(floats({4})), 0, "relu:1"); }), Contains("minor version 0"));
  CHECK(control->wanted_kernels == 0);
  CHECK(backend.place(relu(floats({4}))).level == 0);
}
