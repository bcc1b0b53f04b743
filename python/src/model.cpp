#include <gpunn/error.hpp>
#include <gpunn/explain.hpp>
#include <gpunn/model.hpp>
#include <gpunn/training.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errands/errand.hpp"
#include "shared_model.hpp"
#include "values/arrays.hpp"
#include "values/record.hpp"
#include "values/settings.hpp"

namespace gpunn::python {

namespace {

namespace fs = std::filesystem;

using HostArray = nb::ndarray<nb::ro, nb::device::cpu>;

bool is_packed(const HostArray& array) {
  int64_t stride = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) > 1 && array.stride(i) != stride) return false;
    stride *= static_cast<int64_t>(array.shape(i));
  }
  return true;
}

using HostArrays = std::vector<HostArray>;

// Rows of an array for each input of a model, in its order, as many as a call may bring at a time.
class Batches {
 public:
  Batches(const Model& model, const HostArrays& arrays) : most_(model.max_batch()) {
    if (arrays.size() != model.inputs().size()) {
      throw Error(
          "expected " + std::to_string(model.inputs().size()) + " arrays, found " + std::to_string(arrays.size()),
          ExitCode::usage);
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      Part& part = parts_.emplace_back(part_of(arrays[i]));
      part.name = model.inputs()[i].name;
      if (part.shape.front() == parts_.front().shape.front()) continue;
      throw Error("the input '" + part.name + "' has " + std::to_string(part.shape.front()) + " rows, '" +
                      parts_.front().name + "' has " + std::to_string(parts_.front().shape.front()),
                  ExitCode::usage);
    }
    rows_ = parts_.front().shape.front();
  }
  int64_t rows() const { return rows_; }

  // call(views, first row)
  template <typename Call>
  void for_each(Call call) {
    std::vector<ArrayView> views(parts_.size());
    for (int64_t first = 0, count = 0; first < rows_; first += count) {
      count = std::min(rows_ - first, most_);
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        Part& part = parts_[i];
        part.shape.front() = count;
        views[i] = {.name = part.name,
                    .dtype = part.dtype,
                    .shape = part.shape,
                    .data = part.data + static_cast<std::size_t>(first) * part.row_bytes};
      }
      call(std::span<const ArrayView>(views), first);
    }
  }

 private:
  struct Part {
    std::string name;
    DType dtype;
    const std::byte* data;
    std::size_t row_bytes;
    Shape shape;
  };

  static Part part_of(const HostArray& array) {
    Part part{.name = {},
              .dtype = dtype_of(array.dtype()),
              .data = static_cast<const std::byte*>(array.data()),
              .row_bytes = 0,
              .shape = {}};
    for (std::size_t i = 0; i < array.ndim(); ++i) part.shape.push_back(static_cast<int64_t>(array.shape(i)));
    if (part.shape.empty() || part.shape.front() < 1) {
      throw Error("expected an array of one row or more, found " + to_string(TensorType{part.dtype, part.shape}),
                  ExitCode::usage);
    }
    if (!is_packed(array)) {
      throw Error("the array is not packed in row-major order; numpy.ascontiguousarray() makes it so", ExitCode::usage);
    }
    part.row_bytes = size_of(part.dtype);
    for (std::size_t i = 1; i < part.shape.size(); ++i) part.row_bytes *= static_cast<std::size_t>(part.shape[i]);
    return part;
  }

  int64_t most_, rows_ = 0;
  std::vector<Part> parts_;
};

// A new array of numpy, and its memory.
struct OutputArray {
  nb::object array;
  std::byte* data;
};

template <typename T>
OutputArray new_array(const Shape& shape) {
  NewArray<T> array({shape.begin(), shape.end()});
  auto* const data = reinterpret_cast<std::byte*>(array.data());
  return {nb::cast(array.release()), data};
}

OutputArray new_array(DType dtype, const Shape& shape) {
  switch (dtype) {
    case DType::f64:
      return new_array<double>(shape);
    case DType::i32:
      return new_array<int32_t>(shape);
    case DType::i64:
      return new_array<int64_t>(shape);
    case DType::u8:
      return new_array<uint8_t>(shape);
    case DType::f32:
    case DType::bf16:
    case DType::f16:
      break;
  }
  if (dtype != DType::f32) throw Error("numpy has no type for " + std::string(name_of(dtype)));
  return new_array<float>(shape);
}

nb::typed<nb::list, nb::ndarray<nb::numpy>> run(const SharedModel& shared, const HostArrays& inputs,
                                                const std::vector<std::size_t>& outputs) {
  const Model& model = *shared.model;
  Batches batches(model, inputs);
  nb::typed<nb::list, nb::ndarray<nb::numpy>> answers;
  std::vector<MutableArrayView> targets;
  std::vector<Shape> shapes;
  for (const std::size_t which : outputs) shapes.push_back(batch_shape(model.outputs().at(which).row.shape, 0));
  std::vector<std::byte*> data;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ModelTensor& output = model.outputs()[outputs[i]];
    OutputArray answer = new_array(output.row.dtype, batch_shape(output.row.shape, batches.rows()));
    answers.append(answer.array);
    data.push_back(answer.data);
    targets.push_back({.name = output.name, .dtype = output.row.dtype, .shape = shapes[i], .data = nullptr});
  }
  {
    const Unlocked unlocked;
    const AtWork at_work;
    batches.for_each([&](std::span<const ArrayView> rows, int64_t first) {
      for (std::size_t i = 0; i < targets.size(); ++i) {
        shapes[i].front() = rows.front().shape.front();
        targets[i].data = data[i] + static_cast<std::size_t>(first) * model.outputs()[outputs[i]].row.bytes();
      }
      model.run(rows, targets);
    });
  }
  return answers;
}

std::vector<Prediction> predict_arrays(const SharedModel& shared, const HostArrays& inputs, int64_t top) {
  const Model& model = *shared.model;
  Batches batches(model, inputs);
  std::vector<Prediction> predictions;
  const Unlocked unlocked;
  const AtWork at_work;
  batches.for_each([&](std::span<const ArrayView> rows, int64_t first) {
    for (Decoded& decoded : model.predict(rows, top)) {
      predictions.push_back({.source = "row " + std::to_string(predictions.size()),
                             .top = std::move(decoded.classes),
                             .values = std::move(decoded.values),
                             .label = {},
                             .boxes = std::move(decoded.boxes),
                             .map = std::move(decoded.map)});
    }
    static_cast<void>(first);
  });
  return predictions;
}

nb::ndarray<nb::numpy, uint8_t> classes_of(const LabelMap& map) {
  return array_of(map.classes, {static_cast<std::size_t>(map.height), static_cast<std::size_t>(map.width)});
}

nb::ndarray<nb::numpy, float> explain_array(const SharedModel& shared, const HostArray& input,
                                            std::optional<int64_t> class_index, const std::string& class_name,
                                            const std::string& layer, const std::string& method) {
  const Model& model = *shared.model;
  ExplainOptions options{.class_index = class_index, .layer = layer, .method = explain_method_named(method)};
  if (!class_name.empty()) options.class_index = find_class(model.info(), class_name);
  const Shape& sample = model.info().fields.input().type.shape;
  if (sample.size() != 3) {
    throw Error("the model takes " + to_string(model.info().fields.input().type) + ", and maps are of images [C, H, W]",
                ExitCode::usage);
  }
  Batches batches(model, {input});
  const Shape shape = {batches.rows(), sample[1], sample[2]};
  NewArray<float> maps({shape.begin(), shape.end()});
  {
    const Unlocked unlocked;
    const AtWork at_work;
    batches.for_each([&](std::span<const ArrayView> rows, int64_t first) {
      float* target = maps.data() + first * sample[1] * sample[2];
      for (const Explanation& one : model.explain(rows.front(), options))
        target = std::ranges::copy(one.map, target).out;
    });
  }
  return maps.release();
}

nb::ndarray<nb::numpy, uint8_t> read_images(const SharedModel& shared, const std::vector<fs::path>& files) {
  const Field& input = shared.model->info().fields.input();
  std::vector<uint8_t> all;
  for (const fs::path& file : files) {
    const std::vector<uint8_t> image = read_image(file, input);
    all.insert(all.end(), image.begin(), image.end());
  }
  const Shape shape = batch_shape(input.type.shape, static_cast<int64_t>(files.size()));
  NewArray<uint8_t> images({shape.begin(), shape.end()});
  std::ranges::copy(all, images.data());
  return images.release();
}

constexpr std::array<const char*, 4> kRoles = {"input", "target", "weight", "id"};  // of Role

std::string dtype_name(const TensorType& type) { return std::string(name_of(type.dtype)); }

void bind_info(nb::module_& module) {
  Record<ModelTensor>(module, "ModelTensor", "An input or output of a model; a batch is [rows, *shape].")
      .field("name", &ModelTensor::name)
      .computed(
          "shape", [](const ModelTensor& t) { return sizes_of(t.row.shape); }, "Of one row.")
      .computed(
          "dtype", [](const ModelTensor& t) { return dtype_name(t.row); }, "\"u8\", \"f32\", ...");
  Record<Field>(module, "Field", "A named part of every sample: an input, a target, a weight or an id.")
      .field("name", &Field::name)
      .computed(
          "role", [](const Field& f) { return kRoles.at(static_cast<std::size_t>(f.role)); },
          "\"input\", \"target\", \"weight\" or \"id\".")
      .field("kind", &Field::kind, "\"image\", \"numbers\", \"class\", ...")
      .computed(
          "shape", [](const Field& i) { return sizes_of(i.type.shape); }, "Of one sample: (C, H, W) or (features,).")
      .computed(
          "dtype", [](const Field& i) { return dtype_name(i.type); }, "\"u8\", \"f32\", \"i32\", ...")
      .field("mean", &Field::mean, "By channel or feature, of values scaled by 1/255 where u8.")
      .field("stddev", &Field::stddev)
      .field("names", &Field::names, "The names of the classes, labels or columns; empty: they have none.")
      .field("ids", &Field::ids, "COCO's category id of each class; empty: the data has none.")
      .field("columns", &Field::names, "The same as `names`, of an input.");
  Record<ModelInfo>(module, "ModelInfo", "What a trained model is.")
      .field("task", &ModelInfo::task)
      .computed(
          "fields", [](const ModelInfo& info) { return info.fields.fields; }, "All inputs and targets.")
      .computed(
          "input", [](const ModelInfo& info) { return info.fields.input(); }, "The first input.")
      .computed(
          "outputs", [](const ModelInfo& info) { return info.fields.target().names; },
          "The names of classes, labels or numbers.")
      .computed(
          "output_ids", [](const ModelInfo& info) { return info.fields.target().ids; },
          "COCO's category id of each class; empty if the data has none.");
  Record<ClassProbability>(module, "ClassProbability", "A class, and how probable it is.")
      .field("index", &ClassProbability::index)
      .field("name", &ClassProbability::name)
      .field("probability", &ClassProbability::probability)
      .whole(&ClassProbability::index, &ClassProbability::name, &ClassProbability::probability);
  Record<NamedValue>(module, "NamedValue", "A number of a regression, in the units of the data.")
      .field("name", &NamedValue::name)
      .field("value", &NamedValue::value)
      .whole(&NamedValue::name, &NamedValue::value);
  Record<DetectedBox>(module, "DetectedBox", "An object in an image.")
      .field("left", &DetectedBox::left, "In pixels.")
      .field("top", &DetectedBox::top)
      .field("right", &DetectedBox::right)
      .field("bottom", &DetectedBox::bottom)
      .field("index", &DetectedBox::index, "Of its class.")
      .field("name", &DetectedBox::name)
      .field("score", &DetectedBox::score)
      .whole(&DetectedBox::left, &DetectedBox::top, &DetectedBox::right, &DetectedBox::bottom, &DetectedBox::index,
             &DetectedBox::name, &DetectedBox::score);
  Record<LabelMap>(module, "LabelMap", "The class of each pixel of an image.")
      .field("height", &LabelMap::height)
      .field("width", &LabelMap::width)
      .computed("classes", &classes_of, "uint8 [height, width]. 255: the model did not see the pixel.")
      .whole(&LabelMap::height, &LabelMap::width, &LabelMap::classes);
  Record<Prediction>(module, "Prediction", "What a model makes of a sample.")
      .field("source", &Prediction::source, "The file, \"table.csv:12\" of a line, or \"row 7\".")
      .field("top", &Prediction::top,
             "Of classes or labels: the most probable first. Of a segmentation: the shares of the classes.")
      .field("values", &Prediction::values, "Of a regression.")
      .field("label", &Prediction::label, "Where it is known.")
      .field("boxes", &Prediction::boxes, "Of a detection, the most certain first: in pixels of the image file or row.")
      .field("map", &Prediction::map, "Of a segmentation: in pixels of the image file or row.")
      .whole(&Prediction::source, &Prediction::top, &Prediction::values, &Prediction::label, &Prediction::boxes,
             &Prediction::map);
}

}  // namespace

void bind_model(nb::module_& module) {
  bind_info(module);
  nb::class_<SharedModel>(module, "Model", "A trained model, loaded once. Threads may call it at the same time.")
      .def_static(
          "load",
          [](const fs::path& path, const std::string& backend, std::optional<int64_t> device,
             std::optional<int64_t> threads, int64_t max_batch, const std::vector<fs::path>& plugins, int64_t calls,
             const Settings& settings, const std::vector<std::string>& without) {
            ModelOptions options{.backend = backend,
                                 .device = device,
                                 .threads = threads,
                                 .max_batch = max_batch,
                                 .plugins = plugins,
                                 .calls = calls,
                                 .overrides = overrides_of(settings),
                                 .without_passes = without};
            return SharedModel(on_errand(false, [path, options](Errand&) { return Model::load(path, options); }));
          },
          nb::arg("path"), nb::arg("backend") = "", nb::arg("device") = nb::none(), nb::arg("threads") = nb::none(),
          nb::arg("max_batch") = 64, nb::arg("plugins") = std::vector<fs::path>(), nb::arg("calls") = 0,
          nb::arg("settings") = Settings(), nb::arg("without") = std::vector<std::string>())
      .def("run", &run, nb::arg("inputs").noconvert(), nb::arg("outputs"),
           "The outputs of those numbers for an array [rows, ...] for each input, in host memory, packed.")
      .def("predict", &predict_arrays, nb::arg("inputs").noconvert(), nb::arg("top"))
      .def(
          "predict_files",
          [](const SharedModel& shared, const std::vector<fs::path>& inputs, const std::vector<int64_t>& rows,
             int64_t top, const std::string& damaged) {
            const PredictRequest request{
                .inputs = inputs, .rows = rows, .top_k = top, .damaged = damaged_named(damaged)};
            return on_errand(false, [model = *shared.model, request](Errand&) { return predict(model, request); });
          },
          nb::arg("files"), nb::arg("rows"), nb::arg("top"), nb::arg("damaged"))
      .def("explain", &explain_array, nb::arg("input").noconvert(), nb::arg("class_index"), nb::arg("class_name"),
           nb::arg("layer"), nb::arg("method"))
      .def("read_images", &read_images, nb::arg("files"))
      .def_prop_ro("info", [](const SharedModel& m) { return m.model->info(); })
      .def_prop_ro("experiment", [](const SharedModel& m) { return m.model->experiment(); })
      .def_prop_ro("inputs", [](const SharedModel& m) { return m.model->inputs(); })
      .def_prop_ro("outputs", [](const SharedModel& m) { return m.model->outputs(); })
      .def_prop_ro("max_batch", [](const SharedModel& m) { return m.model->max_batch(); })
      .def_prop_ro("backend", [](const SharedModel& m) { return m.model->backend(); })
      .def_prop_ro("device", [](const SharedModel& m) { return m.model->device(); });
}

}  // namespace gpunn::python
