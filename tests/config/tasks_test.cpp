// Keys that belong to another task are reported at their place.
#include <gpunn/experiment.hpp>

#include "catch.hpp"
#include "support.hpp"

using namespace gpunn;
using namespace config_test;

namespace {

std::string task_text(const std::string& task, const std::string& data, const std::string& more = "") {
  return "task: " + task + "\nmodel: {layers: [linear: {units: 2}]}\ndata: {" + data + "}\n" + more;
}

const std::string kTable = "dataset: csv, path: x";

}  // namespace

TEST_CASE("a task brings its loss, and the metric that is watched") {
  const Experiment regression = parse_experiment(task_text("regression", kTable, "early_stopping: {}"), "e.yaml");
  CHECK(regression.loss.type() == LossKind::mean_squared_error);
  CHECK(regression.checkpoint.monitor == "r2");
  CHECK(regression.early_stopping->monitor == "r2");
  CHECK(regression.data.task == "regression");
  const Experiment labels = parse_experiment(task_text("multi_label", kTable), "e.yaml");
  CHECK(labels.loss.type() == LossKind::binary_cross_entropy);
  CHECK(labels.checkpoint.monitor == "map");
  // Written out in full it reads back.
  for (const Experiment* one : {&regression, &labels}) {
    const Experiment again = parse_experiment(resolved_yaml(*one), "again");
    CHECK(again.task == one->task);
    CHECK(resolved_yaml(again) == resolved_yaml(*one));
  }
}

TEST_CASE("losses and monitors of another task are refused with those that it has") {
  CHECK(errors_of(task_text("regression", kTable, "loss: hinge\ncheckpoint: {monitor: accuracy}\n")) ==
        Texts{"e.yaml:4:7: the task regression has no loss hinge; it has mean_squared_error, huber",
              "e.yaml:5:14: checkpoint.monitor: the task regression has no metric 'accuracy'; it has loss, r2, rmse, "
              "mae, train_loss"});
  CHECK(errors_of(task_text("multi_label", kTable, "early_stopping: {monitor: r2}\n")) ==
        Texts{"e.yaml:4:18: early_stopping.monitor: the task multi_label has no metric 'r2'; it has loss, map, f1, "
              "exact_match, train_loss"});
  CHECK(errors_of(task_text("classification", kTable, "schedule: {type: reduce_on_plateau, monitor: mae}\n")) ==
        Texts{"e.yaml:4:37: schedule.monitor: the task classification has no metric 'mae'; it has loss, accuracy, "
              "top5_accuracy, train_loss, train_accuracy"});
  CHECK(errors_of(task_text("regresion", kTable)).front().find("did you mean 'regression'?") != std::string::npos);
}

TEST_CASE("keys for targets of another kind are told") {
  const auto first = [](const std::string& task, const std::string& data) {
    const Texts errors = errors_of(task_text(task, data));
    return errors.size() == 1 ? errors.front() : std::to_string(errors.size()) + " errors";
  };
  CHECK(first("classification", kTable + ", target_columns: [y]") ==
        "e.yaml:3:31: data.target_columns is not for the task classification; data.label_column names the column of "
        "the classes");
  CHECK(first("regression", kTable + ", label_column: y") ==
        "e.yaml:3:31: data.label_column is not for the task regression; data.target_columns names the columns of the "
        "numbers");
  CHECK_THAT(first("regression", kTable + ", label_separator: ';'"), Contains("lists of labels"));
  CHECK_THAT(first("multi_label", kTable + ", scale_targets: false"), Contains("task regression"));
  CHECK_THAT(first("multi_label", kTable + ", label_separator: ''"), Contains("expected a text"));
  CHECK_THAT(first("multi_label", kTable + ", label_column: a, target_columns: [b]"), Contains("give one of them"));
  CHECK(errors_of(task_text("multi_label", kTable + ", label_column: a, label_separator: ';'")).empty());
  CHECK(errors_of(task_text("regression", kTable + ", target_columns: [b, c], scale_targets: false")).empty());
}

TEST_CASE("lists of images need a table, and have keys of their own") {
  const std::string folder = "dataset: image_folder, path: x";
  CHECK(errors_of(task_text("regression", folder)) ==
        Texts{"e.yaml:3:8: the task regression with data.dataset image_folder needs data.targets: a CSV table of "
              "images and what is learnt of them"});
  CHECK(errors_of(task_text("regression", folder + ", targets: y.csv, target_columns: [age]")).empty());
  CHECK(errors_of(task_text("classification", folder + ", targets: y.csv, label_column: kind")).empty());
  CHECK(errors_of(task_text("classification", folder + ", label_column: kind")) ==
        Texts{"e.yaml:3:40: data.label_column is for the table data.targets; give that too"});
  CHECK(errors_of(task_text("classification", folder + ", weight_column: w")) ==
        Texts{"e.yaml:3:40: data.weight_column is for the table data.targets; give that too"});
  CHECK_THAT(errors_of(task_text("regression", folder + ", targets: y.csv, test_path: z")).at(0),
             Contains("data.test_targets"));
  CHECK_THAT(errors_of(task_text("regression", folder + ", targets: y.csv, test_targets: z, test_fraction: 0.1")).at(0),
             Contains("give one"));
}

TEST_CASE("boxes and the task that finds them go together, and mistakes in their keys are told") {
  const auto first = [](const std::string& task, const std::string& data) {
    const Texts errors = errors_of(task_text(task, data));
    return errors.size() == 1 ? errors.front() : std::to_string(errors.size()) + " errors";
  };
  const std::string drawn = "dataset: drawn_digits";
  CHECK_THAT(first("detection", "dataset: mnist"),
             Contains("learns from images with boxes") && Contains("Choose detection_folder, drawn_digits"));
  CHECK_THAT(first("classification", drawn), Contains("has images with boxes") && Contains("set task: detection"));
  CHECK_THAT(first("detection", drawn + ", zoom: [2, 0.5]"), Contains("data.zoom: expected the least in front"));
  CHECK_THAT(first("detection", drawn + ", channels: 2"), Contains("data.channels: expected 1 or 3, found 2"));
  CHECK_THAT(first("detection", drawn + ", train_limit: 500"), Contains("list the images of each part"));
  CHECK_THAT(first("detection", drawn + ", epoch_samples: 8"), Contains("is less than one batch"));
  CHECK_THAT(first("detection", "dataset: detection_folder, path: x, format: coco"), Contains("data.boxes"));
  CHECK_THAT(first("detection", "dataset: detection_folder, path: x, format: csv, boxes: x.csv, test_path: y"),
             Contains("data.test_boxes"));
  CHECK(parse_experiment(task_text("detection", drawn), "e.yaml").loss.type() == LossKind::focal);
}

TEST_CASE("label maps and the task that learns them go together, and so do its losses and their keys") {
  const auto errors = [](const std::string& loss, const std::string& task = "segmentation") {
    const std::string data = task == "segmentation" ? "dataset: drawn_shapes" : "dataset: drawn_digits";
    return errors_of(task_text(task, data, "loss: " + loss + "\n"));
  };
  CHECK(errors("dice").empty());
  CHECK(errors("{type: focal, gamma: 1, class_weights: [1, 2, 1, 1, 1]}").empty());
  CHECK(errors("{type: sum, cross_entropy: 0, dice: 0.5, focal: 2, label_smoothing: 0.1, smooth: 0}").empty());
  CHECK(errors("hinge") == Texts{"e.yaml:4:7: the task segmentation has no loss hinge; it has cross_entropy, dice, "
                                 "focal, sum"});
  CHECK(errors("{type: sum, cross_entropy: 0, dice: 0}") ==
        Texts{"e.yaml:4:8: loss: expected a weight above 0 among loss.cross_entropy, loss.dice and loss.focal"});
  CHECK(errors("{type: focal, alpha: 0.5}") ==
        Texts{"e.yaml:4:21: loss.alpha is not for the task segmentation; leave it out"});
  CHECK(errors("{type: focal, class_weights: [1, 2]}", "detection") ==
        Texts{"e.yaml:4:21: loss.class_weights is not for the task detection; leave it out"});
  CHECK_THAT(errors("{type: dice, gamma: 1}").at(0), Contains("loss dice has no 'gamma'; it has smooth"));
  CHECK_THAT(errors_of(task_text("segmentation", "dataset: mnist")).at(0),
             Contains("the task segmentation learns from images with label maps") && Contains("drawn_shapes"));
  CHECK_THAT(errors_of(task_text("classification", "dataset: drawn_shapes")).at(0), Contains("set task: segmentation"));
  const Experiment e =
      parse_experiment(task_text("segmentation", "dataset: drawn_shapes", "loss: {type: sum, focal: 3}"), "e.yaml");
  const auto& sum = std::get<LossSum>(e.loss.kind);
  CHECK(sum.cross_entropy == 1);
  CHECK(sum.dice == 1);
  CHECK(sum.focal == 3);
  CHECK(e.checkpoint.monitor == "miou");
  CHECK(resolved_yaml(parse_experiment(resolved_yaml(e), "again")) == resolved_yaml(e));
}

TEST_CASE("photographs and the task that enlarges them go together, and patches have to fit") {
  const auto first = [](const std::string& task, const std::string& data) {
    const Texts errors = errors_of(task_text(task, data));
    return errors.size() == 1 ? errors.front() : std::to_string(errors.size()) + " errors";
  };
  const std::string task = "super_resolution", drawn = "dataset: drawn_photographs, scale: 3, patch_size: 48";
  CHECK(first(task, "dataset: mnist") ==
        "e.yaml:3:8: the task super_resolution learns from photographs; data.dataset mnist has none. Choose "
        "photographs, photograph_folder, drawn_photographs");
  CHECK(first("classification", drawn) ==
        "e.yaml:3:8: data.dataset drawn_photographs has photographs, not for the task classification; set task: "
        "super_resolution or style_transfer");
  CHECK(first(task, "dataset: drawn_photographs, scale: 3, patch_size: 50") ==
        "e.yaml:3:46: data.patch_size: expected a multiple of data.scale (3), found 50");
  CHECK(first(task, drawn + ", train_limit: 500").find("data.train_limit is not for patches") != std::string::npos);
  CHECK(first(task, drawn + ", patches: 8").find("is less than one batch") != std::string::npos);
  CHECK(first(task, "dataset: photographs, train_sets: [t19]").find("expected any of t91, bsds200, found 't19'") !=
        std::string::npos);
  const Experiment experiment = parse_experiment(task_text(task, drawn + ", also_scaled: [0.5]"), "e.yaml");
  CHECK(experiment.loss.type() == LossKind::mean_squared_error);
  CHECK(experiment.checkpoint.monitor == "psnr");
  CHECK(resolved_yaml(parse_experiment(resolved_yaml(experiment), "again")) == resolved_yaml(experiment));
}
