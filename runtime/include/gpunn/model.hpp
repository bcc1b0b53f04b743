#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/explanation.hpp>
#include <gpunn/export.h>
#include <gpunn/model_info.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// How a trained model is opened. An empty option is as the experiment of its training says.
struct ModelOptions {
  std::string backend = {};                         // a plugin's name or file, or "auto"
  std::optional<int64_t> device = {};               // counted from 0
  std::optional<int64_t> threads = {};              // of the backend on the host, for one call; 0: its choice
  int64_t max_batch = 64;                           // rows that one call may bring
  std::optional<Precision> precision = {};          // of products
  std::vector<std::filesystem::path> plugins = {};  // files and folders to find backends in, besides the usual ones
  int64_t calls = 0;                                // that may run at the same time; 0: one a processor, at most 8
  std::vector<Override> overrides = {};             // of other keys, as --set takes them
  std::vector<int64_t> image_size = {};  // rows and columns of inputs, of a model that takes any; empty: those it was
                                         // trained on
  std::vector<std::string> without_passes = {};  // engine_passes() of gpunn/engine.hpp that are left out
};

// An input or output of a model: `row` is the type of one row, so that a batch is [rows, row...].
struct ModelTensor {
  std::string name;
  TensorType row;
};

// Packed, row-major arrays in the caller's memory. shape[0] is the number of rows.
struct ArrayView {
  std::string_view name;  // of the input; empty: the model's only one
  DType dtype = DType::f32;
  std::span<const int64_t> shape;
  const void* data = nullptr;
};
struct MutableArrayView {
  std::string_view name;  // of the output; empty: the first
  DType dtype = DType::f32;
  std::span<const int64_t> shape;
  void* data = nullptr;
};

// A class, its number from 0, and how probable it is, from 0 to 1.
struct ClassProbability {
  int64_t index = 0;
  std::string name;
  double probability = 0;
};

// A number of a regression, named as the column that it was learnt from.
struct NamedValue {
  std::string name;
  double value = 0;
};

// An object that a model finds in an image, in pixels from its top left corner.
struct DetectedBox {
  double left = 0, top = 0, right = 0, bottom = 0;
  int64_t index = 0;  // of its class
  std::string name;
  double score = 0;
};

// The outputs of a row as the task reads them.
struct Decoded {
  std::vector<ClassProbability> classes;  // of a classification or of several labels: the most probable first
  std::vector<NamedValue> values;         // of a regression, in the units of the data
  std::vector<DetectedBox> boxes;         // of a detection: the most certain first, in pixels of the sample
};

// A trained model, loaded once: its weights are on the device, its data set is not needed. A Model is a handle: copies
// are the same model, and the last one to go frees it. All functions may be called from any thread, also while another
// thread destroys its own copy. If the device fails, that call and all later ones throw DeviceLostError.
class GPUNN_API Model {
 public:
  // Opens a run folder (its best.h5, else last.h5), a checkpoint or an ONNX file, with the moving average of the
  // parameters where training kept one. Throws Error: missing where the file, the backend or the device is not there,
  // usage where an option is wrong.
  static Model load(const std::filesystem::path& path, const ModelOptions& options = {});

  Model(const Model&) noexcept;
  Model(Model&&) noexcept;
  Model& operator=(const Model&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const ModelInfo& info() const;
  const Experiment& experiment() const;            // of its training, with the overrides
  const std::vector<ModelTensor>& inputs() const;  // info().input: samples as the data set has them, not normalised
  // The numbers of the last layer, and what they mean: "logits" and "probabilities" of classes or labels, "outputs" and
  // "values" of a regression. For a Network whose outputs have no names, "outputs" alone.
  const std::vector<ModelTensor>& outputs() const;
  int64_t max_batch() const;
  std::string backend() const;
  std::string device() const;  // its name
  // On the device: weights, constants, and the activations of as many calls at the same time as there were. Memory that
  // kernels keep for themselves is not counted.
  uint64_t memory_bytes() const;

  // Fills the outputs that are asked for with what the model makes of 1 to max_batch() rows, and waits for it. A call
  // prepares the kernels for its number of rows where none before it had as many; a later one allocates nothing. Throws
  // Error(usage) where a name, type or shape is not the model's, before anything is done.
  void run(std::span<const ArrayView> inputs, std::span<const MutableArrayView> outputs) const;
  void run(const ArrayView& input, const MutableArrayView& output) const { run({&input, 1}, {&output, 1}); }

  // The same, decoded: for each row the `top` most probable classes, or the numbers.
  std::vector<Decoded> predict(const ArrayView& input, int64_t top = 1) const;

  // For each row, an image [C, H, W], the map of what speaks for a class. The class and its score are those of run();
  // the map is computed in f32. One call at a time explains; the first, and one for another layer than the last,
  // prepares its kernels. Throws Error(usage) where the model takes no images, or has no such class or layer.
  std::vector<Explanation> explain(const ArrayView& input, const ExplainOptions& options = {}) const;

 private:
  friend class Network;
  class Impl;
  explicit Model(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;
};

// Reads an image file as a sample of the model: as many channels and pixels as it takes, fitted as the images of its
// data set were. Throws Error(usage) where the model takes no images, and Error where the file is none.
GPUNN_API std::vector<uint8_t> read_image(const std::filesystem::path& file, const InputInfo& input);
// The same of the bytes of such a file; errors call it `name`. An image of more than `most_pixels` is refused before
// memory for it is taken.
GPUNN_API std::vector<uint8_t> read_image(std::span<const uint8_t> bytes, const std::string& name,
                                          const InputInfo& input, int64_t most_pixels = int64_t{1} << 26);

}  // namespace gpunn
