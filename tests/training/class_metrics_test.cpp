#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "catch.hpp"
#include "runs/trained_model.hpp"
#include "training/fixtures.hpp"
#include "training/tallies.hpp"

using namespace gpunn;
using namespace gpunn::testing;

TEST_CASE("precision, recall and F1 of a matrix") {
  // By scikit-learn 1.5's precision_recall_fscore_support: of cats 3 of 4 predictions and 3 of 5 rows are right.
  const ClassEvalReport report = tallied({3, 2, 0,  //
                                          1, 4, 1,  //
                                          0, 0, 9},
                                         {"cat", "dog", "ship"});
  REQUIRE(report.classes.size() == 3);
  const ClassReport& cat = report.classes[0];
  CHECK(cat.name == "cat");
  CHECK((cat.rows == 5 && cat.predicted == 4 && cat.correct == 3));
  CHECK(cat.precision == Approx(0.75));
  CHECK(cat.recall == Approx(0.6));
  CHECK(cat.f1 == Approx(2.0 / 3));
  const ClassReport& dog = report.classes[1];
  CHECK(dog.precision == Approx(4.0 / 6));
  CHECK(dog.recall == Approx(4.0 / 6));
  const ClassReport& ship = report.classes[2];
  CHECK(ship.precision == Approx(0.9));
  CHECK(ship.recall == 1);
  CHECK(report.macro_precision == Approx((0.75 + 4.0 / 6 + 0.9) / 3));
  CHECK(report.macro_recall == Approx((0.6 + 4.0 / 6 + 1) / 3));
  CHECK(report.macro_f1 == Approx((2.0 / 3 + 4.0 / 6 + 18.0 / 19) / 3));
  CHECK(report.confusion.at(1, 2) == 1);
  CHECK(report.confusion.at(2, 1) == 0);
}

TEST_CASE("a class that is never predicted counts, one that does not occur does not") {
  // The second class has rows but no prediction, the third neither.
  const ClassEvalReport report = tallied({4, 0, 0,  //
                                          4, 0, 0,  //
                                          0, 0, 0},
                                         {"a", "b", "c"});
  CHECK(report.classes[1].precision == 0);
  CHECK(report.classes[1].recall == 0);
  CHECK(report.classes[1].f1 == 0);
  CHECK(report.classes[2].rows == 0);
  CHECK_FALSE(is_defined(report.classes[2].f1));
  CHECK(report.macro_precision == Approx(0.25));
  CHECK(report.macro_recall == Approx(0.5));
  CHECK_FALSE(is_defined(tallied({0}, {"a"}).macro_f1));
}

TEST_CASE("of very many classes there is no matrix, and all else") {
  tasks::ClassTally tally(std::vector<std::string>(kMostConfusionClasses + 1, "x"));
  tally.add(0, kMostConfusionClasses, 3);
  tally.add(kMostConfusionClasses, kMostConfusionClasses);
  ClassEvalReport report;
  tally.put_into(report);
  CHECK(report.confusion.counts.empty());
  CHECK(report.confusion.side() == 0);
  CHECK(report.classes.back().precision == 0.25);
  CHECK(report.macro_recall == 0.5);
}

TEST_CASE("the predicted class is the first of the largest outputs, and none where one is NaN") {
  CHECK(tasks::predicted_class(std::array{1.0F, 3.0F, 3.0F}) == 1);
  CHECK(tasks::predicted_class(std::array{-1.0F, -2.0F}) == 0);
  CHECK(tasks::predicted_class(std::array{1.0F, std::numeric_limits<float>::quiet_NaN()}) == -1);
}

TEST_CASE("the rows of a trained model add up to its evaluation, resident and streamed") {
  const TemporaryFolder folder;
  // 211 rows in batches of 64: the last is not full.
  const RunResult run = train(small_mlp(folder.path(), {{"training.epochs", "1"}, {"data.synthetic_test", "211"}}));
  const char* const residency = GENERATE("device", "stream");
  const TrainedModel model{.path = run.run, .overrides = {{"data.residency", residency}}};
  const ClassEvalReport report = evaluate_classes(model, 5);
  const EvalReport plain = evaluate(model);
  CHECK(report.total.loss == plain.loss);
  CHECK(report.total.scores.value("accuracy") == plain.scores.value("accuracy"));
  CHECK(report.total.scores.value("top5_accuracy") == plain.scores.value("top5_accuracy"));
  CHECK(report.total.rows == 211);
  CHECK(std::accumulate(report.confusion.counts.begin(), report.confusion.counts.end(), int64_t{0}) == 211);
  int64_t correct = 0;
  for (const ClassReport& one : report.classes) correct += one.correct;
  CHECK(static_cast<double>(correct) / 211 == Approx(plain.scores.value("accuracy")));
  CHECK(correct < 206);  // there are mistakes to look at

  // The mistakes are what `predict` says of the same rows.
  REQUIRE(report.mistakes.size() == 5);
  PredictRequest request;
  for (const Mistake& mistake : report.mistakes) request.rows.push_back(mistake.row);
  request.top_k = 10;
  const std::vector<Prediction> predictions = predict(model, request);
  for (std::size_t i = 0; i < 5; ++i) {
    const Mistake& mistake = report.mistakes[i];
    const Prediction& prediction = predictions[i];
    CHECK(prediction.label == mistake.label);
    CHECK(prediction.top[0].index == mistake.predicted);
    CHECK(prediction.top[0].probability == Approx(mistake.probability).epsilon(1e-5));
    CHECK(mistake.predicted != mistake.label);
    CHECK(report.confusion.at(static_cast<std::size_t>(mistake.label), static_cast<std::size_t>(mistake.predicted)) >
          0);
    CHECK(mistake.loss == Approx(-std::log(mistake.label_probability)).epsilon(1e-3));
    if (i > 0) CHECK(mistake.loss <= report.mistakes[i - 1].loss);
  }
}

TEST_CASE("the samples of the test split can be read back, wherever they are") {
  const TemporaryFolder folder;
  const Experiment experiment = small_mlp(folder.path());
  const Dataset data = load_dataset(experiment.data);
  for (const char* residency : {"device", "stream"}) {
    training::Session session = training::Session::open(small_mlp(folder.path(), {{"data.residency", residency}}));
    for (const int64_t row : {0, 77, 199}) CHECK(session.data().test_sample(row) == sample_of(data.test, row));
  }
}
