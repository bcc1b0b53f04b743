// A network that Python holds, and the trainings of it.
#pragma once

#include <gpunn/network.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace gpunn::python {

namespace nb = nanobind;

using PackedArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

struct PythonNetwork {
  explicit PythonNetwork(Network made) : network(std::make_shared<Network>(std::move(made))) {}
  // Shared with a training that goes on alone after a second Ctrl-C.
  std::shared_ptr<Network> network;
  // The thread that may read it while it is trained; none: it is not in use.
  std::shared_ptr<std::atomic<std::thread::id>> user = std::make_shared<std::atomic<std::thread::id>>();
};

// The use of a network while one lives: one thread at a time. A callback of its training, which runs on the thread that
// waits for the training, may read it.
class InUse {
 public:
  enum class Kind { reads, writes };
  InUse(const PythonNetwork& network, Kind kind);
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse();

 private:
  std::shared_ptr<std::atomic<std::thread::id>> user_;
  bool first_ = false;
};

// The samples of each input are u8, f32, f64 or i32, in the order of the network's inputs; targets are classes, int32
// [rows], or [rows, outputs]: numbers, float64, or labels, float32; `weights` of the rows float64 [rows, 1]. `next`,
// which may be None, brings batches of both instead of `samples` and `targets`: `samples` are then those of the first,
// and `rows` what an epoch has at most. `rounded_to` names the type that the samples had, if it is narrower. `listener`
// is a gpunn._listener.Listener.
void train(PythonNetwork& self, const std::vector<PackedArray>& samples, const nb::object& targets,
           const std::optional<PackedArray>& weights, const std::optional<std::vector<PackedArray>>& val_samples,
           const nb::object& val_targets, const nb::object& next, int64_t rows, nb::handle listener,
           const std::string& run_folder, const std::string& rounded_to);
EvalReport evaluate(const PythonNetwork& self, const std::vector<PackedArray>& samples, const nb::object& targets,
                    const std::optional<PackedArray>& weights);

}  // namespace gpunn::python
