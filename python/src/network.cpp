// gpunn::Network: weights in memory, trained on arrays and on batches that Python brings.
#include <gpunn/error.hpp>
#include <gpunn/network.hpp>
#include <gpunn/summary.hpp>

#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "process.hpp"
#include "settings.hpp"
#include "shared_model.hpp"

namespace gpunn::python {

namespace {

using HostArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

DType dtype_of(const HostArray& array) {
  if (array.dtype() == nb::dtype<uint8_t>()) return DType::u8;
  if (array.dtype() == nb::dtype<float>()) return DType::f32;
  throw Error("samples are uint8 or float32", ExitCode::usage);
}

DType dtype_named(const std::string& name) {
  for (const DType type : {DType::u8, DType::f32}) {
    if (name == name_of(type)) return type;
  }
  throw Error("samples are u8 or f32, found '" + name + "'", ExitCode::usage);
}

Shape shape_of(const HostArray& array) {
  Shape shape;
  for (std::size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<int64_t>(array.shape(i)));
  return shape;
}

// Parts of a data set. The samples stay where they are; the part keeps them alive.
Split part_of(const HostArray& samples, const nb::object& targets) {
  Split part;
  part.samples = {dtype_of(samples), shape_of(samples)};
  part.lent = std::shared_ptr<const std::byte>(static_cast<const std::byte*>(samples.data()),
                                               [kept = HostArray(samples)](const std::byte*) mutable {
                                                 const nb::gil_scoped_acquire lock;
                                                 kept = HostArray();
                                               });
  Labels labels;
  if (nb::try_cast(targets, labels, false)) {
    part.labels.assign(labels.data(), labels.data() + labels.shape(0));
    return part;
  }
  const auto numbers = nb::cast<Floats>(targets);
  Field field;
  field.type.dtype = DType::f32;
  for (std::size_t i = 0; i < numbers.ndim(); ++i) field.type.shape.push_back(static_cast<int64_t>(numbers.shape(i)));
  field.values.resize(numbers.size() * sizeof(float));
  if (numbers.size() > 0) std::memcpy(field.values.data(), numbers.data(), field.values.size());
  part.fields[kTargetField] = std::move(field);
  return part;
}

TargetKind target_kind(const std::string& task) {
  return task == "regression"    ? TargetKind::numbers
         : task == "multi_label" ? TargetKind::labels
                                 : TargetKind::one_class;
}

Dataset arrays_for(const Network& network) {
  Dataset set;
  set.name = kArrays;
  set.source = "the calling program";
  set.targets = target_kind(network.experiment().task);
  set.classes = static_cast<int64_t>(network.info().outputs.size());
  return set;
}

// Batches from `next(step)`, which returns (samples, targets) that were checked, contiguous and of the right types.
class PythonBatches final : public BatchSource {
 public:
  explicit PythonBatches(nb::object next) : next_(std::move(next)) {}
  ~PythonBatches() override {
    const nb::gil_scoped_acquire lock;
    next_.reset();
  }
  int64_t read(int64_t step, std::span<std::byte> samples, std::span<std::byte> targets) override {
    const nb::gil_scoped_acquire lock;
    const nb::object batch = next_(step);
    const auto x = nb::cast<HostArray>(batch[0]);
    const auto y = nb::cast<HostArray>(batch[1]);
    copy(x, samples, "samples");
    copy(y, targets, "targets");
    return static_cast<int64_t>(x.shape(0));
  }

 private:
  static void copy(const HostArray& from, std::span<std::byte> to, const char* what) {
    const std::size_t bytes = from.size() * from.itemsize();
    if (bytes > to.size()) throw Error(std::string("a batch has more ") + what + " than there is room for");
    if (bytes > 0) std::memcpy(to.data(), from.data(), bytes);
  }
  nb::object next_;
};

// One that says nothing, as top-5 accuracy of three classes, is left out.
void add_scores(nb::dict& to, const std::string& prefix, const Scores& scores) {
  for (const Score& score : scores) {
    if (!std::isnan(score.value)) to[nb::str((prefix + score.metric.name).c_str())] = score.value;
  }
}

nb::dict scores_dict(const Scores& scores) {
  nb::dict result;
  add_scores(result, "", scores);
  return result;
}

nb::dict as_dict(const EvalReport& report) {
  nb::dict result = scores_dict(report.scores);
  result["loss"] = report.loss;
  return result;
}

nb::dict as_dict(const EpochReport& report) {
  nb::dict result;
  result["epoch"] = report.epoch;
  result["global_step"] = report.global_step;
  result["loss"] = report.train_loss;
  add_scores(result, "", report.train_scores);
  if (report.evaluation.rows > 0) {
    result["val_loss"] = report.evaluation.loss;
    add_scores(result, "val_", report.evaluation.scores);
  }
  result["learning_rate"] = report.learning_rate;
  result["seconds"] = report.train_seconds;
  result["samples_per_second"] = report.samples_per_second;
  return result;
}

nb::dict as_dict(const StepReport& report) {
  nb::dict result = scores_dict(report.scores);
  result["epoch"] = report.epoch;
  result["epochs"] = report.epochs;
  result["step"] = report.step;
  result["steps"] = report.steps;
  result["global_step"] = report.global_step;
  result["loss"] = report.loss;
  result["learning_rate"] = report.learning_rate;
  result["samples_per_second"] = report.samples_per_second;
  result["seconds_left"] = report.seconds_left;
  return result;
}

// Tells a Python object of the training. Its on_step and on_epoch return whether the training is to stop. Ctrl-C stops
// it too, and is raised when the weights are kept.
class NetworkListener final : public TrainingListener {
 public:
  explicit NetworkListener(nb::object listener) : listener_(std::move(listener)) {}
  void on_message(const std::string& text) override {
    const nb::gil_scoped_acquire lock;
    listener_.attr("on_message")(text);
  }
  void on_start(const RunStart& start) override {
    const nb::gil_scoped_acquire lock;
    listener_.attr("on_start")(start.backend, start.device);
  }
  void on_step(const StepReport& report) override {
    const nb::gil_scoped_acquire lock;
    look_for_signals();
    stop_if(listener_.attr("on_step")(as_dict(report)));
  }
  void on_epoch(const EpochReport& report) override {
    const nb::gil_scoped_acquire lock;
    look_for_signals();
    stop_if(listener_.attr("on_epoch")(as_dict(report)));
  }
  std::atomic<bool>& stop() { return stop_; }
  // With the interpreter's lock held.
  void raise_signal() {
    if (signal_) std::rethrow_exception(std::exchange(signal_, nullptr));
  }

 private:
  void look_for_signals() {
    if (signal_ || PyErr_CheckSignals() == 0) return;
    try {
      nb::raise_python_error();
    } catch (...) {
      signal_ = std::current_exception();
    }
    stop_ = true;
  }
  void stop_if(const nb::object& answer) {
    if (nb::cast<bool>(answer)) stop_ = true;
  }
  nb::object listener_;
  std::atomic<bool> stop_{false};
  std::exception_ptr signal_;
};

struct PythonNetwork {
  Network network;
  // The thread that uses it while the interpreter's lock is released; a callback of its training may read it.
  std::shared_ptr<std::atomic<std::thread::id>> user = std::make_shared<std::atomic<std::thread::id>>();
};

// The use of a network while one lives: one thread at a time.
class InUse {
 public:
  enum class Kind { reads, writes };
  InUse(const PythonNetwork& network, Kind kind) : user_(network.user) {
    std::thread::id user;
    first_ = user_->compare_exchange_strong(user, std::this_thread::get_id());
    if (first_ || (kind == Kind::reads && user == std::this_thread::get_id())) return;
    throw Error("the network is in use: " + std::string(user == std::this_thread::get_id()
                                                            ? "a callback of its training can't change it"
                                                            : "another thread trains, evaluates or saves it"),
                ExitCode::usage);
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
  ~InUse() {
    if (first_) *user_ = std::thread::id();
  }

 private:
  std::shared_ptr<std::atomic<std::thread::id>> user_;
  bool first_ = false;
};

ModelInfo info_of(const std::string& dtype, const std::vector<int64_t>& shape, const std::vector<double>& mean,
                  const std::vector<double>& stddev, const std::vector<std::string>& outputs) {
  ModelInfo info;
  info.input.sample = {dtype_named(dtype), shape};
  info.input.name = shape.size() == 3 ? "image" : "features";
  info.input.mean = mean;
  info.input.stddev = stddev;
  info.outputs = outputs;
  return info;
}

nb::dict info_dict(const Network& network) {
  const ModelInfo& info = network.info();
  nb::dict result;
  result["task"] = network.experiment().task;
  result["dtype"] = std::string(name_of(info.input.sample.dtype));
  result["shape"] = nb::cast(info.input.sample.shape);
  result["mean"] = nb::cast(info.input.mean);
  result["stddev"] = nb::cast(info.input.stddev);
  result["outputs"] = nb::cast(info.outputs);
  result["target_mean"] = nb::cast(info.target_mean);
  result["target_stddev"] = nb::cast(info.target_stddev);
  return result;
}

nb::list layers_of(const Experiment& experiment) {
  nb::list result;
  for (const LayerSpec& layer : experiment.model.layers) {
    nb::dict keys;
    for (const LayerParameter& parameter : layer.parameters) {
      keys[nb::str(parameter.name.c_str())] = nb::cast(parameter.values);
    }
    result.append(nb::make_tuple(layer.type, layer.name, nb::cast(layer.from), keys));
  }
  return result;
}

// What a network answers, with the weights of one moment.
class Runner {
 public:
  explicit Runner(Model model) : model_(std::move(model)) {}
  nb::object run(const HostArray& samples, int64_t output) const {
    const Shape shape = shape_of(samples);
    const auto which = static_cast<std::size_t>(output);
    const ModelTensor& tensor = model_.model->outputs().at(which);
    Shape answer = tensor.row.shape;
    answer.insert(answer.begin(), shape.empty() ? 0 : shape.front());
    NewArray<float> values({answer.begin(), answer.end()});
    {
      const Unlocked released;
      const AtWork at_work;
      model_.model->run({.name = {}, .dtype = dtype_of(samples), .shape = shape, .data = samples.data()},
                        {.name = tensor.name, .dtype = DType::f32, .shape = answer, .data = values.data()});
    }
    return nb::cast(values.release());
  }
  int64_t max_batch() const { return model_.model->max_batch(); }
  int64_t outputs() const { return static_cast<int64_t>(model_.model->outputs().size()); }
  std::string backend() const { return model_.model->backend(); }

 private:
  SharedModel model_;
};

nb::dict summary_dict(const SummaryReport& report) {
  nb::dict result;
  nb::list layers;
  for (const SummaryLayer& layer : report.layers) {
    nb::dict one;
    one["name"] = layer.name;
    one["type"] = layer.type;
    one["output"] = nb::cast(Shape(layer.output.begin() + 1, layer.output.end()));
    one["parameters"] = layer.parameters;
    one["trainable"] = layer.trainable;
    one["buffers"] = layer.buffers;
    one["forward_flops"] = layer.forward_flops;
    layers.append(one);
  }
  result["layers"] = layers;
  result["parameters"] = report.parameters;
  result["trainable"] = report.trainable;
  result["buffers"] = report.buffers;
  result["forward_flops"] = report.forward_flops;
  result["step_flops"] = report.step_flops;
  result["batch_size"] = report.batch_size;
  result["total_bytes"] = report.total_bytes;
  return result;
}

nb::list train(PythonNetwork& self, const HostArray& samples, const nb::object& targets,
               const std::optional<HostArray>& val_samples, const nb::object& val_targets, const nb::object& next,
               int64_t rows, const nb::object& listener, const std::string& run_folder) {
  const InUse in_use(self, InUse::Kind::writes);
  Dataset set = arrays_for(self.network);
  if (next.is_none()) {
    set.train = part_of(samples, targets);
  } else {
    set.train.samples = {dtype_of(samples), shape_of(samples)};
    set.train.samples.shape.front() = rows;
    set.batches = std::make_shared<PythonBatches>(next);
  }
  if (val_samples) {
    set.validation = part_of(*val_samples, val_targets);
  } else {
    set.unwatched = true;
  }
  NetworkListener told(listener);
  RunResult result;
  {
    const Unlocked released;
    const AtWork at_work(&told.stop());
    result = self.network.train(std::move(set), {.listener = &told, .stop = &told.stop(), .run_folder = run_folder});
  }
  told.raise_signal();
  nb::list epochs;
  for (const EpochReport& epoch : result.epochs) epochs.append(as_dict(epoch));
  return epochs;
}

nb::dict evaluate(const PythonNetwork& self, const HostArray& samples, const nb::object& targets) {
  const InUse in_use(self, InUse::Kind::reads);
  Dataset set = arrays_for(self.network);
  set.test = part_of(samples, targets);
  EvalReport report;
  {
    const Unlocked released;
    const AtWork at_work;
    report = self.network.evaluate(std::move(set));
  }
  return as_dict(report);
}

}  // namespace

void bind_network(nb::module_& module) {
  nb::class_<Runner>(module, "Runner", "A network's answers, with the weights of one moment.")
      .def("run", &Runner::run, nb::arg("samples"), nb::arg("output"))
      .def_prop_ro("max_batch", &Runner::max_batch)
      .def_prop_ro("outputs", &Runner::outputs)
      .def_prop_ro("backend", &Runner::backend);

  nb::class_<PythonNetwork>(module, "Network", "Weights in host memory, and all that a training of them knows.")
      .def(
          "__init__",
          [](PythonNetwork* self, const std::string& text, const std::string& origin, const std::string& dtype,
             const std::vector<int64_t>& shape, const std::vector<double>& mean, const std::vector<double>& stddev,
             const std::vector<std::string>& outputs) {
            new (self)
                PythonNetwork{Network(parse_experiment(text, origin), info_of(dtype, shape, mean, stddev, outputs))};
          },
          nb::arg("text"), nb::arg("origin"), nb::arg("dtype"), nb::arg("shape"), nb::arg("mean"), nb::arg("stddev"),
          nb::arg("outputs"))
      .def_static(
          "load", [](const std::filesystem::path& path) { return PythonNetwork{Network::load(path)}; }, nb::arg("path"))
      .def(
          "set",
          [](PythonNetwork& self, const std::string& text, const std::string& origin, const Settings& settings,
             const std::vector<double>& mean, const std::vector<double>& stddev,
             const std::vector<std::string>& outputs) {
            const InUse in_use(self, InUse::Kind::writes);
            ModelInfo info = self.network.info();
            info.input.mean = mean;
            info.input.stddev = stddev;
            info.outputs = outputs;
            self.network.set(parse_experiment(text, origin, overrides_of(settings)), std::move(info));
          },
          nb::arg("text"), nb::arg("origin"), nb::arg("settings"), nb::arg("mean"), nb::arg("stddev"),
          nb::arg("outputs"))
      .def("copy",
           [](const PythonNetwork& self) {
             const InUse in_use(self, InUse::Kind::reads);
             return PythonNetwork{self.network};
           })
      .def("info", [](const PythonNetwork& self) { return info_dict(self.network); })
      .def("resolved", [](const PythonNetwork& self) { return resolved_yaml(self.network.experiment()); })
      .def("layers", [](const PythonNetwork& self) { return layers_of(self.network.experiment()); })
      .def("tensors",
           [](const PythonNetwork& self) {
             nb::list result;
             for (const NetworkTensor& tensor : self.network.tensors()) {
               result.append(nb::make_tuple(tensor.name, tensor.layer, nb::tuple(nb::cast(tensor.shape)), tensor.buffer,
                                            tensor.trainable));
             }
             return result;
           })
      .def(
          "read",
          [](const PythonNetwork& self, const std::string& name) {
            const InUse in_use(self, InUse::Kind::reads);
            const std::span<const float> values = self.network.read(name);
            for (const NetworkTensor& tensor : self.network.tensors()) {
              if (tensor.name == name) {
                return nb::cast(array_of(std::vector<float>(values.begin(), values.end()),
                                         {tensor.shape.begin(), tensor.shape.end()}));
              }
            }
            return nb::object();
          },
          nb::arg("name"))
      .def(
          "write",
          [](PythonNetwork& self, const std::string& name, const Floats& values) {
            const InUse in_use(self, InUse::Kind::writes);
            self.network.write(name, {values.data(), values.size()});
          },
          nb::arg("name"), nb::arg("values"))
      .def(
          "read_file",
          [](PythonNetwork& self, const std::filesystem::path& file, const std::filesystem::path& names, bool strict) {
            const InUse in_use(self, InUse::Kind::writes);
            return self.network.read_file(file, names, strict);
          },
          nb::arg("file"), nb::arg("names"), nb::arg("strict"))
      .def_prop_ro("steps", [](const PythonNetwork& self) { return self.network.steps(); })
      .def_prop_ro("epochs", [](const PythonNetwork& self) { return self.network.epochs(); })
      .def("forget_training",
           [](PythonNetwork& self) {
             const InUse in_use(self, InUse::Kind::writes);
             self.network.forget_training();
           })
      .def(
          "save",
          [](const PythonNetwork& self, const std::filesystem::path& file) {
            const InUse in_use(self, InUse::Kind::reads);
            const Unlocked released;
            const AtWork at_work;
            self.network.save(file);
          },
          nb::arg("file"))
      .def("train", &train, nb::arg("samples"), nb::arg("targets").none(), nb::arg("val_samples").none(),
           nb::arg("val_targets").none(), nb::arg("next").none(), nb::arg("rows"), nb::arg("listener"),
           nb::arg("run_folder"))
      .def("evaluate", &evaluate, nb::arg("samples"), nb::arg("targets"))
      .def(
          "runner",
          [](const PythonNetwork& self, int64_t max_batch) {
            const InUse in_use(self, InUse::Kind::reads);
            const Unlocked released;
            const AtWork at_work;
            return Runner(self.network.model({.max_batch = max_batch}));
          },
          nb::arg("max_batch"));

  module.def(
      "summarize",
      [](const std::string& text, const std::string& origin, const std::vector<int64_t>& shape) {
        return summary_dict(summarize(parse_experiment(text, origin), shape));
      },
      nb::arg("text"), nb::arg("origin"), nb::arg("shape"));
  module.def(
      "read_model",
      [](const std::string& text, const std::string& origin) {
        const Experiment experiment = parse_experiment(text, origin);
        return nb::make_tuple(experiment.model.name, nb::cast(experiment.model.input), layers_of(experiment));
      },
      nb::arg("text"), nb::arg("origin"), "The name, input and layers of an experiment's model, blocks taken apart.");
}

}  // namespace gpunn::python
