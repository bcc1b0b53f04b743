// gpunn.h: the library for C. No exception leaves a function, and no address that a caller gives as a handle is
// followed: handles are numbers that are never used twice.
#include <gpunn/error.hpp>
#include <gpunn/gpunn.h>
#include <gpunn/model.hpp>
#include <gpunn/plugins.hpp>
#include <gpunn/version.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "inference/caller_memory.hpp"
#include "tasks/task.hpp"

namespace gpunn {

using inference::copy_struct;
using inference::give_struct;
using inference::list_of;
using inference::require_extent;
using inference::require_pointer;
using inference::require_struct_size;

namespace {

constexpr std::size_t kMostCArrays = 65;  // as Model takes them
constexpr std::size_t kMostCDims = GPUNN_MAX_RANK;
constexpr uint64_t kMostCPlugins = 4096;  // a count above this is a negative number, or was never set

// What a handle stands for, with the texts that callers look at.
struct LoadedModel {
  Model model;
  std::string backend, device;
};

class Handles {
 public:
  // Never destroyed: a model that the caller left behind must not go down after the driver it uses.
  static Handles& get() {
    static Handles* const handles = new Handles;
    return *handles;
  }

  gpunn_model* add(std::shared_ptr<LoadedModel> loaded) {
    const std::unique_lock lock(mutex_);
    models_.emplace(++last_, std::move(loaded));
    // A number that callers can't tell from a pointer, and that nothing follows.
    return reinterpret_cast<gpunn_model*>(last_);  // NOLINT(performance-no-int-to-ptr)
  }

  std::shared_ptr<LoadedModel> find(gpunn_model* handle) const {
    const std::shared_lock lock(mutex_);
    const auto found = models_.find(number_of_handle(handle));
    if (found == models_.end()) throw_unknown(handle);
    return found->second;
  }

  // The model goes when the last call that uses it is over.
  std::shared_ptr<LoadedModel> remove(gpunn_model* handle) {
    const std::unique_lock lock(mutex_);
    const auto found = models_.find(number_of_handle(handle));
    if (found == models_.end()) throw_unknown(handle);
    std::shared_ptr<LoadedModel> loaded = std::move(found->second);
    models_.erase(found);
    return loaded;
  }

 private:
  static uintptr_t number_of_handle(gpunn_model* handle) { return reinterpret_cast<uintptr_t>(handle); }
  [[noreturn]] static void throw_unknown(gpunn_model* handle) {
    throw Error(handle == nullptr ? "the model is NULL"
                                  : "the handle is of no model: it was destroyed, or gpunn_model_load never gave it",
                ExitCode::usage);
  }

  mutable std::shared_mutex mutex_;
  std::unordered_map<uintptr_t, std::shared_ptr<LoadedModel>> models_;
  uintptr_t last_ = 0;
};

std::string& last_error() {
  thread_local std::string text;
  return text;
}

gpunn_result failed(gpunn_result result, const char* text) noexcept {
  try {
    last_error() = text;
  } catch (...) {  // no memory for the text
  }
  return result;
}

gpunn_result result_of(const Error& error) {
  if (error.code() == ExitCode::usage) return GPUNN_WRONG_USE;
  return error.code() == ExitCode::missing ? GPUNN_MISSING : GPUNN_FAILED;
}

template <class F>
gpunn_result c_call(F&& function) noexcept {
  try {
    function();
    return GPUNN_DONE;
  } catch (const DeviceLostError& error) {
    return failed(GPUNN_LOST_DEVICE, error.what());
  } catch (const Error& error) {
    return failed(result_of(error), error.what());
  } catch (const std::bad_alloc&) {
    return failed(GPUNN_MISSING, "out of memory");
  } catch (const std::length_error&) {  // a container that no memory can hold
    return failed(GPUNN_MISSING, "out of memory");
  } catch (const std::exception& error) {
    return failed(GPUNN_FAILED, error.what());
  } catch (...) {
    return failed(GPUNN_FAILED, "an error of an unknown kind");
  }
}

gpunn_model_options default_options() {
  gpunn_model_options options{};
  options.struct_size = sizeof(options);
  options.precision = GPUNN_AS_TRAINED;
  options.device = GPUNN_AS_TRAINED;
  options.threads = GPUNN_AS_TRAINED;
  options.max_batch = ModelOptions().max_batch;
  return options;
}

ModelOptions options_from(const gpunn_model_options* given) {
  gpunn_model_options options = default_options();
  if (given != nullptr) copy_struct(*given, options, require_struct_size(given->struct_size, "options"));
  ModelOptions result;
  if (options.backend != nullptr) result.backend = options.backend;
  if (options.device != GPUNN_AS_TRAINED) result.device = options.device;
  if (options.threads != GPUNN_AS_TRAINED) result.threads = options.threads;
  result.max_batch = options.max_batch;
  result.calls = options.calls;
  for (const char* const plugin : list_of(options.plugins, options.n_plugins, kMostCPlugins, "options: plugins")) {
    require_pointer(plugin, "options: a plugin");
    result.plugins.emplace_back(plugin);
  }
  switch (options.precision) {
    case GPUNN_AS_TRAINED:
      break;
    case GPUNN_PRECISION_FP32:
      result.precision = Precision::fp32;
      break;
    case GPUNN_PRECISION_TF32:
      result.precision = Precision::tf32;
      break;
    case GPUNN_PRECISION_BF16:
      result.precision = Precision::bf16;
      break;
    default:
      throw Error("options: precision is " + std::to_string(options.precision) + ", which is none", ExitCode::usage);
  }
  return result;
}

void describe_tensor(const std::vector<ModelTensor>& tensors, uint32_t index, const char* kind,
                     gpunn_model_tensor* result) {
  if (index >= tensors.size()) {
    throw Error("there is no " + std::string(kind) + " " + std::to_string(index) + ": the model has " +
                    std::to_string(tensors.size()) + ", counted from 0",
                ExitCode::usage);
  }
  const ModelTensor& tensor = tensors[index];
  gpunn_model_tensor known{};
  known.dtype = static_cast<int32_t>(tensor.row.dtype);
  known.name = tensor.name.c_str();
  known.row_bytes = tensor.row.bytes();
  known.rank = static_cast<int32_t>(tensor.row.shape.size());
  std::ranges::copy(tensor.row.shape, known.dim);
  give_struct(known, result, "the tensor");
}

// A caller's arrays as Model takes them. Allocates nothing where they fit.
template <class View>
class Views {
 public:
  Views(const gpunn_array* arrays, uint32_t count, const std::vector<ModelTensor>& tensors, int64_t rows,
        const char* kind) {
    // Before any of them is read: a caller with fewer arrays than the count says has other memory behind them.
    const std::size_t most = std::min(tensors.size(), kMostCArrays);
    if (count > most) {
      throw Error(std::to_string(count) + " " + kind + " arrays: expected at most " + std::to_string(most) +
                      (most < tensors.size() ? " in a call" : ", as many as the model has"),
                  ExitCode::usage);
    }
    for (const gpunn_array& array : list_of(arrays, count, kMostCArrays, std::string(kind) + "s")) {
      add(array, tensors, rows, kind);
    }
  }
  std::span<const View> all() const { return std::span(views_).first(count_); }

 private:
  void add(const gpunn_array& array, const std::vector<ModelTensor>& tensors, int64_t rows, const char* kind) {
    const std::string_view name = array.name == nullptr ? std::string_view() : std::string_view(array.name);
    const auto found = name.empty() ? tensors.begin() : std::ranges::find(tensors, name, &ModelTensor::name);
    std::array<int64_t, kMostCDims>& shape = shapes_[count_];
    View& view = views_[count_++];
    view.name = name;
    view.dtype = static_cast<DType>(array.dtype);
    view.data = array.data;
    if (found == tensors.end()) return;  // which run() refuses
    const TensorType& row = found->row;
    // f64 replaces the f32 of an input, and f32 replaces the f64 of an output.
    const DType narrow = std::is_same_v<View, ArrayView> ? row.dtype : view.dtype;
    const DType wide = std::is_same_v<View, ArrayView> ? view.dtype : row.dtype;
    if (view.dtype != row.dtype && (narrow != DType::f32 || wide != DType::f64)) {
      throw Error("the " + std::string(kind) + " '" + found->name + "' is " + to_string(row) +
                      " a row, and dtype is another: " + std::to_string(array.dtype),
                  ExitCode::usage);
    }
    const TensorType given{view.dtype, row.shape};
    const uint64_t bytes = require_extent(array.data, static_cast<uint64_t>(rows), given.bytes(), found->name);
    if (array.bytes != bytes) {
      throw Error("the " + std::string(kind) + " '" + found->name + "' is " + to_string(given) + " a row: expected " +
                      std::to_string(bytes) + " bytes for " + std::to_string(rows) + " rows, found " +
                      std::to_string(array.bytes),
                  ExitCode::usage);
    }
    shape[0] = rows;
    std::ranges::copy(row.shape, shape.begin() + 1);
    view.shape = std::span(shape).first(row.shape.size() + 1);
  }

  std::array<std::array<int64_t, kMostCDims>, kMostCArrays> shapes_{};
  std::array<View, kMostCArrays> views_{};
  std::size_t count_ = 0;
};

void require_rows(const Model& model, int64_t rows) {
  if (rows >= 1 && rows <= model.max_batch()) return;
  throw Error("a call brings 1 to " + std::to_string(model.max_batch()) + " rows, as max_batch says; found " +
                  std::to_string(rows),
              ExitCode::usage);
}

}  // namespace

}  // namespace gpunn

using gpunn::c_call;
using gpunn::Error;
using gpunn::ExitCode;
using gpunn::Handles;

const char* gpunn_last_error(void) { return gpunn::last_error().c_str(); }

const char* gpunn_version(void) {
  static const std::string text(gpunn::version());
  return text.c_str();
}

gpunn_result gpunn_model_options_init(gpunn_model_options* options, uint32_t struct_size) {
  return c_call([&] {
    gpunn::require_pointer(options, "options");
    std::memset(options, 0, gpunn::require_struct_size(struct_size, "options"));
    options->struct_size = struct_size;
    gpunn::give_struct(gpunn::default_options(), options, "options");
  });
}

gpunn_result gpunn_model_load(const char* path, const gpunn_model_options* options, gpunn_model** model) {
  return c_call([&] {
    gpunn::require_pointer(path, "the path");
    gpunn::require_pointer(static_cast<const void*>(model), "the place for the model");
    gpunn::Model loaded = gpunn::Model::load(path, gpunn::options_from(options));
    std::string backend = loaded.backend(), device = loaded.device();
    *model = Handles::get().add(std::make_shared<gpunn::LoadedModel>(
        gpunn::LoadedModel{std::move(loaded), std::move(backend), std::move(device)}));
  });
}

gpunn_result gpunn_model_destroy(gpunn_model* model) {
  return c_call([&] { Handles::get().remove(model); });
}

gpunn_result gpunn_model_describe(gpunn_model* model, gpunn_model_info* info) {
  return c_call([&] {
    const auto loaded = Handles::get().find(model);
    const gpunn::Model& m = loaded->model;
    gpunn_model_info known{};
    known.n_inputs = static_cast<uint32_t>(m.inputs().size());
    known.n_outputs = static_cast<uint32_t>(m.outputs().size());
    known.n_classes = static_cast<uint32_t>(m.info().fields.target().names.size());
    known.max_batch = m.max_batch();
    known.name = m.experiment().name.c_str();
    known.task = m.info().task.c_str();
    known.backend = loaded->backend.c_str();
    known.device = loaded->device.c_str();
    gpunn::give_struct(known, info, "the info");
  });
}

gpunn_result gpunn_model_input(gpunn_model* model, uint32_t index, gpunn_model_tensor* tensor) {
  return c_call([&] { gpunn::describe_tensor(Handles::get().find(model)->model.inputs(), index, "input", tensor); });
}

gpunn_result gpunn_model_output(gpunn_model* model, uint32_t index, gpunn_model_tensor* tensor) {
  return c_call([&] { gpunn::describe_tensor(Handles::get().find(model)->model.outputs(), index, "output", tensor); });
}

gpunn_result gpunn_model_class(gpunn_model* model, uint32_t index, const char** name) {
  return c_call([&] {
    const auto loaded = Handles::get().find(model);
    gpunn::require_pointer(static_cast<const void*>(name), "the place for the name");
    const std::vector<std::string>& classes = loaded->model.info().fields.target().names;
    if (index >= classes.size()) {
      throw Error("there is no class " + std::to_string(index) + ": the model has " + std::to_string(classes.size()) +
                      ", counted from 0",
                  ExitCode::usage);
    }
    *name = classes[index].c_str();
  });
}

gpunn_result gpunn_model_run(gpunn_model* model, int64_t rows, const gpunn_array* inputs, uint32_t n_inputs,
                             const gpunn_array* outputs, uint32_t n_outputs) {
  return c_call([&] {
    const auto loaded = Handles::get().find(model);
    const gpunn::Model& m = loaded->model;
    gpunn::require_rows(m, rows);
    const gpunn::Views<gpunn::ArrayView> given(inputs, n_inputs, m.inputs(), rows, "input");
    const gpunn::Views<gpunn::MutableArrayView> wanted(outputs, n_outputs, m.outputs(), rows, "output");
    m.run(given.all(), wanted.all());
  });
}

gpunn_result gpunn_model_classify(gpunn_model* model, int64_t rows, const gpunn_array* input, uint32_t top,
                                  gpunn_class_probability* found) {
  return c_call([&] {
    const auto loaded = Handles::get().find(model);
    const gpunn::Model& m = loaded->model;
    gpunn::require_pointer(input, "the input");
    gpunn::require_pointer(found, "the place for what is found");
    gpunn::require_rows(m, rows);
    const std::vector<std::string>& classes = m.info().fields.target().names;
    if (!gpunn::tasks::find(m.info().task).answers().probabilities || classes.empty()) {
      throw Error(
          "the model has no named classes, its task is " + m.info().task + ": gpunn_model_run gives its outputs",
          ExitCode::usage);
    }
    if (top < 1 || top > classes.size()) {
      throw Error("top: expected 1 to " + std::to_string(classes.size()) + ", the number of classes, found " +
                      std::to_string(top),
                  ExitCode::usage);
    }
    const auto count = static_cast<uint32_t>(m.inputs().size());
    const gpunn::Views<gpunn::ArrayView> given(input, count, m.inputs(), rows, "input");
    gpunn::require_extent(found, static_cast<uint64_t>(rows) * top, sizeof(*found), "the place for what is found");
    gpunn_class_probability* next = found;
    for (const gpunn::Decoded& row : m.predict(given.all(), top)) {
      for (const gpunn::ClassProbability& one : row.classes) {
        *next++ = {one.index, classes[static_cast<std::size_t>(one.index)].c_str(), one.probability};
      }
    }
  });
}

gpunn_result gpunn_model_read_image(gpunn_model* model, const char* file, void* data, uint64_t bytes) {
  return c_call([&] {
    const auto loaded = Handles::get().find(model);
    gpunn::require_pointer(file, "the file");
    gpunn::require_pointer(data, "the place for the image");
    const std::vector<uint8_t> values = gpunn::read_image(file, loaded->model.info().fields.input());
    if (bytes != values.size()) {
      throw Error("an image takes " + std::to_string(values.size()) + " bytes, found room for " + std::to_string(bytes),
                  ExitCode::usage);
    }
    std::memcpy(data, values.data(), values.size());
  });
}

void gpunn_shutdown(void) { gpunn::shutdown_plugins(); }
