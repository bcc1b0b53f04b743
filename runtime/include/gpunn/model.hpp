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

// How a trained model is opened. Empty options take the value of the experiment that trained it.
struct ModelOptions {
  std::string backend = {};                         // a plugin's name or file, or "auto"
  std::optional<int64_t> device = {};               // counted from 0
  std::optional<int64_t> threads = {};              // of the backend on the host, for one call; 0: its choice
  int64_t max_batch = 64;                           // most rows of one call
  std::optional<Precision> precision = {};          // of products
  std::vector<std::filesystem::path> plugins = {};  // files and folders to find backends in, besides the usual ones
  int64_t calls = 0;                                // calls at the same time; 0: one for each processor, at most 8
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

// Packed, row-major arrays in the caller's memory. shape[0] is the number of rows. Where a model takes f32, it takes
// f64 as well, and subtracts its mean before it rounds. An output that is f64 may be asked for as f32.
struct ArrayView {
  std::string_view name;  // name of the input; empty: the model's only one
  DType dtype = DType::f32;
  std::span<const int64_t> shape;
  const void* data = nullptr;
};
struct MutableArrayView {
  std::string_view name;  // name of the output; empty: the first
  DType dtype = DType::f32;
  std::span<const int64_t> shape;
  void* data = nullptr;
};

// A class: its number, counted from 0, and its probability from 0 to 1.
struct ClassProbability {
  int64_t index = 0;
  std::string name;
  double probability = 0;
};

// A number that a regression predicts, with the name of its target column.
struct NamedValue {
  std::string name;
  double value = 0;
  double stddev = 0;  // of the target column in the training data; 0: the model does not scale its targets
};

// A detected object, in pixels from the top left corner of the image.
struct DetectedBox {
  double left = 0, top = 0, right = 0, bottom = 0;
  int64_t index = 0;  // of its class
  std::string name;
  double score = 0;
};

// The class of each pixel of an image.
struct LabelMap {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> classes;           // [height, width]
  std::vector<float> probabilities = {};  // [classes of the model, height, width]; empty: not asked for
};

// How an image of any size is given to a model: in tiles of the size of its images.
struct FullSize {
  // Rows and columns on each side of a tile that are computed and not used, except at the picture's border. Default: an
  // eighth of the tile's, so that neighbours share a quarter.
  std::optional<int64_t> overlap = {};
};

// The outputs of a row, decoded by the task.
struct Decoded {
  std::vector<ClassProbability> classes;  // of a classification or a multi-label task: the most probable first
  std::vector<NamedValue> values;         // of a regression, in the units of the data
  std::vector<DetectedBox> boxes;         // of a detection: the highest score first, in pixels of the sample
  std::optional<LabelMap> map = {};       // of a segmentation, in pixels of the sample
};

// A trained model. Its weights are loaded once and stay on the device; it does not need its data set. A Model is a
// handle: copies share the model, and the last copy frees it. All functions may be called from any thread, even while
// another thread destroys its own copy. If the device fails, that call and all later ones throw DeviceLostError.
class GPUNN_API Model {
 public:
  // Opens a run folder (its best.h5, else last.h5), a checkpoint or an ONNX file. Takes the running average of the
  // parameters if the training kept one. Throws Error: missing if the file, the backend or the device does not exist,
  // usage if an option is wrong.
  static Model load(const std::filesystem::path& path, const ModelOptions& options = {});

  Model(const Model&) noexcept;
  Model(Model&&) noexcept;
  Model& operator=(const Model&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const ModelInfo& info() const;
  const Experiment& experiment() const;            // the experiment of its training, with the overrides
  const std::vector<ModelTensor>& inputs() const;  // samples in the form of the data set, not normalised
  // The model's outputs, and last the decoded form of the first one: "logits" and "probabilities" of classes or labels,
  // "outputs" and "values" of a regression. A model that names its outputs has its own names for "logits". A Network
  // whose outputs have no names has "outputs" alone.
  // "values" in the units of scaled targets are f64: f32 would round a large offset away.
  const std::vector<ModelTensor>& outputs() const;
  int64_t max_batch() const;
  std::string backend() const;
  std::string device() const;  // its name
  // On the device: weights, constants, and activations for as many calls as have run at the same time. Does not count
  // memory that kernels keep for themselves.
  uint64_t memory_bytes() const;

  // Computes the requested outputs for 1 to max_batch() rows and waits for them. The first call with a number of rows
  // prepares the kernels for it; later calls allocate nothing. Throws Error(usage) before it computes anything, if a
  // name, type or shape is not the model's.
  void run(std::span<const ArrayView> inputs, std::span<const MutableArrayView> outputs) const;
  void run(const ArrayView& input, const MutableArrayView& output) const { run({&input, 1}, {&output, 1}); }

  // The same, decoded: the `top` most probable classes of each row, its numbers, or its label map.
  std::vector<Decoded> predict(std::span<const ArrayView> inputs, int64_t top = 1,
                               bool map_probabilities = false) const;
  std::vector<Decoded> predict(const ArrayView& input, int64_t top = 1, bool map_probabilities = false) const {
    return predict({&input, 1}, top, map_probabilities);
  }

  // Computes an activation map for each row, an image [C, H, W]. The class and its score are those of run(); the map is
  // computed in f32. Only one call at a time runs this. The first call, and each call for another layer, prepares its
  // kernels. Throws Error(usage) if the model takes no images, or has no such class or layer.
  std::vector<Explanation> explain(const ArrayView& input, const ExplainOptions& options = {}) const;

 private:
  friend class Network;
  class Impl;
  explicit Model(std::shared_ptr<Impl> impl) noexcept;
  std::shared_ptr<Impl> impl_;
};

// Reads an image file as a sample of the model. Converts channels and size as the model's data set did. Throws
// Error(usage) if the model takes no images, and Error if the file is not an image.
GPUNN_API std::vector<uint8_t> read_image(const std::filesystem::path& file, const Field& input);
// The same for the bytes of such a file; errors call it `name`. Refuses an image of more than `most_pixels` before it
// allocates memory.
GPUNN_API std::vector<uint8_t> read_image(std::span<const uint8_t> bytes, const std::string& name, const Field& input,
                                          int64_t most_pixels = int64_t{1} << 26);

}  // namespace gpunn
