#include <gpunn/engine.hpp>
#include <gpunn/evaluation.hpp>
#include <gpunn/onnx_export.hpp>
#include <gpunn/report.hpp>

#include <string>
#include <vector>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "errands/listener.hpp"
#include "values/arrays.hpp"
#include "values/record.hpp"
#include "values/scores.hpp"
#include "values/settings.hpp"

namespace gpunn::python {

namespace {

namespace fs = std::filesystem;

nb::ndarray<nb::numpy, int64_t> confusion_of(const ClassEvalReport& report) {
  const ConfusionMatrix& matrix = report.confusion;
  return array_of(matrix.counts, {matrix.side(), matrix.side()});
}

nb::ndarray<nb::numpy, double> numbers_of(const ClassEvalReport& report, const std::vector<double>& values) {
  const std::size_t outputs = report.outputs.size();
  return array_of(values, {outputs > 0 ? values.size() / outputs : 0, outputs});
}

using Figures = nb::typed<nb::dict, std::string, double>;

Figures figures_of(const ClassEvalReport& report) {
  nb::dict figures;
  if (!report.detection) return Figures(figures);
  for (const auto& [name, value] : report.detection->figures) figures[name.c_str()] = value;
  return Figures(figures);
}

std::vector<DetectedClass> detected_classes_of(const ClassEvalReport& report) {
  return report.detection ? report.detection->classes : std::vector<DetectedClass>();
}

void bind_evaluation_rows(nb::module_& module) {
  Record<ClassReport>(module, "ClassReport", "One class of the evaluated data.")
      .field("index", &ClassReport::index)
      .field("name", &ClassReport::name)
      .field("rows", &ClassReport::rows, "Of this class.")
      .field("predicted", &ClassReport::predicted, "Taken for this class, rightly or not.")
      .field("correct", &ClassReport::correct, "Both.")
      .field("precision", &ClassReport::precision)
      .field("recall", &ClassReport::recall)
      .field("f1", &ClassReport::f1);
  Record<Mistake>(module, "Mistake", "A row that was taken for another class than its own.")
      .field("row", &Mistake::row, "Counts from 0.")
      .field("label", &Mistake::label)
      .field("predicted", &Mistake::predicted)
      .field("probability", &Mistake::probability, "Of the predicted class.")
      .field("label_probability", &Mistake::label_probability, "Of its own class.")
      .field("loss", &Mistake::loss);
  Record<OutputReport>(module, "OutputReport", "A target column, a label or a class of pixels of the evaluated data.")
      .field("index", &OutputReport::index)
      .field("name", &OutputReport::name)
      .field("rows", &OutputReport::rows, "Of a label: the rows that have it. Of a class of pixels: its pixels.")
      .computed(
          "metrics", [](const OutputReport& r) { return scores_of(r.scores); }, kScoresDoc);
  Record<DetectedClass>(module, "DetectedClass", "One class of evaluated images with boxes. NaN without objects.")
      .field("name", &DetectedClass::name)
      .field("objects", &DetectedClass::objects)
      .field("detections", &DetectedClass::detections)
      .field("ap", &DetectedClass::ap, "VOC's average precision at an overlap of 0.5.")
      .field("coco_ap", &DetectedClass::coco_ap, "COCO's: the mean over the overlaps 0.5, 0.55, ..., 0.95.");
  Record<RowReport>(module, "RowReport", "A row that was foretold badly.")
      .field("row", &RowReport::row, "Counts from 0.")
      .field("loss", &RowReport::loss)
      .field("target", &RowReport::target)
      .field("prediction", &RowReport::prediction);
}

}  // namespace

void bind_evaluation(nb::module_& module) {
  bind_evaluation_rows(module);
  Record<ClassEvalReport>(module, "ClassEvalReport", "A model on its test data, class by class or output by output.")
      .field("total", &ClassEvalReport::total)
      .field("classes", &ClassEvalReport::classes)
      .field("macro_precision", &ClassEvalReport::macro_precision)
      .field("macro_recall", &ClassEvalReport::macro_recall)
      .field("macro_f1", &ClassEvalReport::macro_f1)
      .field("mistakes", &ClassEvalReport::mistakes, "Those with the largest loss, by falling loss.")
      .field("outputs", &ClassEvalReport::outputs, "Of data without classes.")
      .computed("detected_classes", &detected_classes_of, "Of images with boxes.")
      .computed("figures", &figures_of, "Of images with boxes: COCO's and VOC's figures by name; NaN if undefined.")
      .field("worst_rows", &ClassEvalReport::worst_rows, "Likewise: those with the largest loss, by falling loss.")
      .of()
      .def_prop_ro(
          "confusion", &confusion_of, nb::rv_policy::automatic,
          "int64 [classes, classes]: counts by the true class, and within it by the predicted one. Of boxes the last "
          "row and column are for no object. Empty without classes, or with more than 4096.")
      .def_prop_ro(
          "target_values", [](const ClassEvalReport& r) { return numbers_of(r, r.target_values); },
          nb::rv_policy::automatic, "float64 [rows, outputs] of a regression, in the units of the data.")
      .def_prop_ro(
          "predicted_values", [](const ClassEvalReport& r) { return numbers_of(r, r.predicted_values); },
          nb::rv_policy::automatic, "float64 [rows, outputs] of a regression, in the units of the data.");
  module.def(
      "evaluate",
      [](const fs::path& path, const Settings& settings, int64_t mistakes, nb::handle listener) {
        return on_errand(false,
                         [model = TrainedModel{path, overrides_of(settings)}, mistakes, listener](Errand& errand) {
                           PythonListener told(errand, listener);
                           return evaluate_classes(model, mistakes, &told);
                         });
      },
      nb::arg("path"), nb::arg("settings"), nb::arg("mistakes"), nb::arg("listener").none(),
      "A run folder or checkpoint on its test data.");
  module.def(
      "write_report",
      [](const fs::path& run, const fs::path& file, const Settings& settings, int64_t mistakes, nb::handle listener) {
        const ReportRequest request{
            .run = run, .file = file, .overrides = overrides_of(settings), .mistakes = mistakes};
        return on_errand(false, [request, listener](Errand& errand) {
          PythonListener told(errand, listener);
          return write_report(request, &told);
        });
      },
      nb::arg("run"), nb::arg("file"), nb::arg("settings"), nb::arg("mistakes"), nb::arg("listener").none(),
      "Writes what there is to see of a run as one HTML page; returns the file.");
  Record<ExportReport>(module, "ExportReport", "A file of weights that was written.")
      .field("file", &ExportReport::file)
      .field("tensors", &ExportReport::tensors)
      .field("numbers", &ExportReport::numbers)
      .field("unnamed", &ExportReport::unnamed, "Tensors that the table of names has no row for.");
  module.def(
      "export_weights",
      [](const fs::path& model, const fs::path& file, const fs::path& names, const Settings& settings) {
        return on_errand(false, [model, file, names, overrides = overrides_of(settings)](Errand&) {
          return export_weights(model, file, names, overrides);
        });
      },
      nb::arg("model"), nb::arg("file"), nb::arg("names"), nb::arg("settings"),
      "Writes weights as a .safetensors file.");
  Record<OnnxExportReport>(module, "OnnxExportReport", "An ONNX model that was written.")
      .field("file", &OnnxExportReport::file)
      .field("data", &OnnxExportReport::data, "The file with the weights; empty where the model has them.")
      .field("opset", &OnnxExportReport::opset)
      .field("ir_version", &OnnxExportReport::ir_version)
      .field("nodes", &OnnxExportReport::nodes)
      .field("tensors", &OnnxExportReport::tensors)
      .field("numbers", &OnnxExportReport::numbers)
      .field("warnings", &OnnxExportReport::warnings, "Columns that the file's float32 rounds too coarsely.");
  module.def(
      "export_onnx",
      [](const fs::path& model, const fs::path& file, int64_t opset, bool raw_input, bool with_preprocessing,
         bool fold_batch_norm, bool external_data, const Settings& settings) {
        const OnnxExportOptions options{.opset = opset,
                                        .raw_input = raw_input,
                                        .with_preprocessing = with_preprocessing,
                                        .fold_batch_norm = fold_batch_norm,
                                        .external_data = external_data};
        return on_errand(false, [model, file, options, overrides = overrides_of(settings)](Errand&) {
          return export_onnx(model, file, options, overrides);
        });
      },
      nb::arg("model"), nb::arg("file"), nb::arg("opset"), nb::arg("raw_input"), nb::arg("with_preprocessing"),
      nb::arg("fold_batch_norm"), nb::arg("external_data"), nb::arg("settings"), "Writes a model as an ONNX file.");
  Record<EngineExportReport>(module, "EngineExportReport", "An engine that was written.")
      .field("file", &EngineExportReport::file)
      .field("backend", &EngineExportReport::backend)
      .field("device", &EngineExportReport::device)
      .field("batches", &EngineExportReport::batches, "The numbers of rows that there is a program for.")
      .field("ops", &EngineExportReport::ops)
      .field("constants", &EngineExportReport::constants)
      .field("file_bytes", &EngineExportReport::file_bytes);
  module.def(
      "export_engine",
      [](const fs::path& model, const fs::path& file, const std::vector<int64_t>& batches, const Settings& settings) {
        ModelOptions options;
        options.overrides = overrides_of(settings);
        return on_errand(
            false, [model, file, batches, options](Errand&) { return export_engine(model, file, batches, options); });
      },
      nb::arg("model"), nb::arg("file"), nb::arg("batches"), nb::arg("settings"),
      "Writes a model as an engine, planned for one device.");
}

}  // namespace gpunn::python
