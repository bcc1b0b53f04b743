#include <gpunn/report.hpp>

#include <cmath>
#include <fstream>

#include "catch.hpp"
#include "common/files.hpp"
#include "report/history.hpp"
#include "report/page.hpp"
#include "training/fixtures.hpp"
#include "training/tallies.hpp"

using namespace gpunn;
using namespace gpunn::testing;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

bool self_contained(const std::string& page) {
  for (const char* outside : {"<script", "src=\"http", "href=\"http", "url(", "@import", "<iframe", "<object"}) {
    if (page.find(outside) != std::string::npos) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the report of a run shows its figures, mistakes and filters") {
  const TemporaryFolder folder;
  const RunResult run = train(small_lenet(folder.path(), {{"training.epochs", "2"}}));
  const std::filesystem::path file = write_report({.run = run.run, .file = {}, .mistakes = 5});
  CHECK(file == run.run / "report.html");
  const std::string page = read_text(file);
  CHECK(self_contained(page));
  const ClassEvalReport expected = evaluate_classes({.path = run.run, .overrides = {}}, 5);
  REQUIRE(expected.mistakes.size() == 5);
  CHECK_THAT(page, Contains("<dd id=\"rows\">200</dd>") && Contains("Confusion matrix") &&
                       Contains("test row " + std::to_string(expected.mistakes[0].row) + "<"));
  // The mistakes and the filters; the curves are drawn in the page.
  CHECK(count(page, "<img src=\"data:image/png;base64,") == 6);
  CHECK(count(page, "<img class=\"map\" src=\"data:image/png;base64,") == 5);
  CHECK_THAT(page, Contains("by Grad-CAM of the layer pool2."));
  CHECK(count(page, "<img ") == count(page, " alt=\""));
  CHECK(count(page, "<svg ") == 3);
  CHECK_THAT(page, Contains("conv1.weight f32[6, 1, 5, 5]"));
  for (const ClassReport& one : expected.classes) {
    CHECK_THAT(page, Contains("<th scope=\"row\">" + one.name + "</th><td>" + std::to_string(one.rows) + "</td>"));
  }

  const std::filesystem::path elsewhere = folder.path() / "elsewhere.html";
  CHECK(write_report({.run = run.run, .file = elsewhere, .mistakes = 0}) == elsewhere);
  CHECK(count(read_text(elsewhere), "<img ") == 1);
}

TEST_CASE("the report of enlarged images has a detail of each") {
  const TemporaryFolder folder;
  const RunResult run = train(load_experiment(experiment_file("espcn_x3"), {{"backend", "cpu"},
                                                                            {"runs", folder.path().string()},
                                                                            {"training.epochs", "1"},
                                                                            {"data.dataset", "drawn_photographs"},
                                                                            {"data.patches", "64"},
                                                                            {"data.synthetic_train", "3"},
                                                                            {"data.synthetic_test", "2"}}));
  const std::string page = read_text(write_report({.run = run.run, .file = {}, .mistakes = 1}));
  CHECK(self_contained(page));
  // Bicubic, the model and the original of one image, and the filters.
  CHECK(count(page, "<img ") == 4);
  CHECK(count(page, "<img ") == count(page, " alt=\""));
  CHECK_THAT(page, Contains("<h3>drawn 0</h3>") && Contains("<strong>bicubic</strong>") && !Contains("<h3>drawn 1"));
  CHECK_THAT(page, Contains("Test bicubic PSNR") && !Contains("Confusion matrix"));
}

TEST_CASE("samples that are no images are shown as numbers, and a model without convolutions without filters") {
  const TemporaryFolder folder;
  // Hardly trained, so that there are mistakes.
  const RunResult run =
      train(load_experiment(experiment_file("perceptron_points"), {{"backend", "cpu"},
                                                                   {"runs", folder.path().string()},
                                                                   {"training.epochs", "1"},
                                                                   {"data.validation_fraction", "0.2"},
                                                                   {"optimizer.learning_rate", "1e-6"}}));
  const std::string page = read_text(write_report({.run = run.run, .file = {}}));
  CHECK(count(page, "<img ") == 0);
  CHECK_THAT(page, !Contains("Filters of"));
  // The epochs were judged by what was put aside, the report is of the test data.
  CHECK_THAT(page, Contains(">validation</text>") && Contains(">validation loss</th>") && !Contains(">test</text>") &&
                       Contains("<dd id=\"rows\">200</dd>"));
  const auto first = page.find("<li><figure><p>");
  REQUIRE(first != std::string::npos);
  double x = 0, y = 0;
  CHECK(std::sscanf(page.c_str() + first, "<li><figure><p>%lf, %lf</p>", &x, &y) == 2);
}

TEST_CASE("a report wants a run folder, and a file that can be written") {
  const TemporaryFolder folder;
  const auto code = [](const ReportRequest& request) {
    try {
      write_report(request);
    } catch (const Error& error) {
      return error.code();
    }
    return ExitCode::done;
  };
  CHECK(code({.run = folder.path() / "nothing", .file = {}}) == ExitCode::missing);
  CHECK(code({.run = folder.path(), .file = {}}) == ExitCode::missing);  // no checkpoint
  CHECK(code({.run = folder.path(), .file = folder.path() / "nowhere" / "x.html"}) == ExitCode::usage);
}

TEST_CASE("records are read by step, and what is none is passed over") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "metrics.jsonl";
  std::ofstream(file) << R"({"kind":"step","epoch":2,"global_step":15,"loss":0.5,"accuracy":null,"learning_rate":0.1}
not JSON
[1, 2]
{"kind":"epoch","epoch":1,"global_step":10,"train_loss":0.9,"test_loss":"?","best":true}
{"kind":"step","epoch":1,"global_step":5,"loss":1.5}
{"kind":"step","epoch":1}
{"kind":"epoch","epoch":2,"glob)";
  const reports::History history = reports::read_history(file, {{"accuracy", "accuracy", true, true}});
  REQUIRE(history.steps.size() == 2);
  CHECK(history.steps[0].step == 5);
  CHECK(history.steps[1].train_loss == 0.5);
  CHECK(std::isnan(history.steps[1].train_scores.at(0)));
  REQUIRE(history.epochs.size() == 1);
  CHECK(history.epochs[0].best);
  CHECK(history.epochs[0].train_loss == 0.9);
  CHECK(std::isnan(history.epochs[0].loss));
  CHECK(reports::read_history(folder.path() / "none", {}).epochs.empty());
}

TEST_CASE("a matrix of many classes is a picture, what is confused most is named, and texts are escaped") {
  constexpr std::size_t kClasses = 30;
  std::vector<int64_t> confusion(kClasses * kClasses, 0);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kClasses; ++i) {
    confusion[i * kClasses + i] = 50;
    names.push_back("class " + std::to_string(i));
  }
  confusion[7 * kClasses + 9] = 12;
  reports::Contents contents;
  contents.title = "<b>many</b> & \"more\"";
  contents.experiment = "name: </pre><script>alert(1)</script>";
  names[3] = "<img src=x>";
  contents.evaluation = tallied(confusion, names);
  const std::string page = reports::page(contents);
  CHECK(count(page, "<img ") == 1);
  CHECK(count(page, "id=\"confusion\"") == 0);
  CHECK_THAT(page,
             Contains("<h1>&lt;b&gt;many&lt;/b&gt; &amp; &quot;more&quot;</h1>") && Contains("3 &lt;img src=x&gt;"));
  CHECK_THAT(page, Contains("<td>7 class 7</td><td>9 class 9</td><td class=\"count\">12</td>"));
  CHECK(self_contained(page));
}
