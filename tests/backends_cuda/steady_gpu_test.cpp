// A steady training step: the host allocates nothing and waits for nothing.
#include <gpunn/experiment.hpp>

#include "catch.hpp"
#include "gpu.hpp"
#include "session/session.hpp"

using namespace gpunn;

namespace {

uint64_t free_bytes() {
  const auto plugin = gpu::registry().chain("cuda_naive").front();
  gpunn_device_options options{};
  options.struct_size = sizeof(options);
  gpunn_error error{};
  error.struct_size = sizeof(error);
  gpunn_device* device = nullptr;
  REQUIRE(plugin->table().device_open(&options, &device, &error) == GPUNN_OK);
  gpunn_device_info info{};
  info.struct_size = sizeof(info);
  REQUIRE(plugin->table().device_info(device, &info, &error) == GPUNN_OK);
  plugin->table().device_close(device);
  return info.free_bytes;
}

Experiment lenet(const std::string& backend, bool fused = true) {
  Experiment experiment = load_experiment(std::filesystem::path(GPUNN_SOURCE_DIR) / "experiments" / "lenet_digits.yaml",
                                          {{"data.synthetic_train", "6400"},
                                           {"data.synthetic_test", "200"},
                                           {"data.batch_size", "64"},
                                           {"training.subgraphs", fused ? "true" : "false"},
                                           {"backend", backend}});
  experiment.plugins = {gpu::sample()};
  return experiment;
}

}  // namespace

TEST_CASE("a steady step allocates nothing, neither by the runtime nor within the plugins") {
  struct Case {
    const char* name;
    bool fused;  // whole steps may be fused subgraphs
  };
  for (const auto& [name, fused] :
       {Case{"cuda_naive", true}, Case{"cuda_tiled", true}, Case{"cuda_tiled", false}, Case{"cudnn", true}}) {
    const auto reports = gpu::registry().files();
    const bool there =
        std::any_of(reports.begin(), reports.end(), [&, name = name](const auto& r) { return r.name == name; });
    if (!there) continue;
    INFO(name << (fused ? "" : ", op by op"));
    training::Session session = training::Session::open(lenet(name, fused));
    session.train_steps(100);  // warmed up, captured, once and several steps to a launch
    session.train_steps(3);
    session.backend().synchronize();
    const int64_t allocations = session.backend().allocations();
    const int64_t waits = session.backend().synchronizations();
    const uint64_t free = free_bytes();
    session.train_steps(100);
    session.train_steps(3);
    CHECK(session.backend().allocations() == allocations);
    CHECK(session.backend().synchronizations() == waits);
    session.backend().synchronize();
    CHECK(free_bytes() == free);
    CHECK(session.step() == 206);
  }
}

// The learning rate of a step is read by a kernel that waits for the host. If anything in the steps behind it waited
// for the device, the two would wait for each other until the kernel gives up.
TEST_CASE("the host puts steps on the stream while the device has not begun the first of them") {
  training::Session session = training::Session::open(lenet("cuda_test"));
  CudaControl& control = gpu::control();
  session.train_steps(100);
  session.train_steps(3);
  REQUIRE(session.step() == 103);  // waits
  *control.open = 0;
  session.train_steps(100);
  session.train_steps(3);
  CHECK(*control.gave_up == 0);
  *control.open = 1;
  session.backend().synchronize();
  CHECK(*control.gave_up == 0);
  CHECK(session.step() == 206);
}
