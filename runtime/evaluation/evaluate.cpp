#include "evaluation/evaluate.hpp"

#include <gpunn/evaluation.hpp>
#include <gpunn/training.hpp>

#include <memory>
#include <string>
#include <utility>

#include "evaluation/non_finite_cause.hpp"
#include "evaluation/open_trained.hpp"
#include "runs/trained_model.hpp"
#include "tasks/report.hpp"

namespace gpunn {

ClassEvalReport training::evaluate_classes(Session& session, int64_t worst) {
  const auto shown =
      session.task().make_report({.dataset = session.dataset(), .worst = worst, .sample = [&](int64_t row) {
                                    return session.data().test_sample(row);
                                  }});
  ClassEvalReport report;
  report.total = session.evaluate_rows([&](const tasks::EvaluatedRows& rows) { shown->add(rows); });
  report.output = session.task().output();
  shown->finish(session.evaluated_sums(), report);
  return report;
}

EvalReport evaluate(const TrainedModel& model, TrainingListener* listener) {
  return training::open_trained(model, listener)->evaluate();
}

ClassEvalReport evaluate_classes(const TrainedModel& model, int64_t mistakes, TrainingListener* listener) {
  const std::unique_ptr<training::Session> session = training::open_trained(model, listener);
  ClassEvalReport report = training::evaluate_classes(*session, mistakes);
  auto& found = report.total.non_finite;
  if (found) {
    found->cause = training::non_finite_cause(model, *session);
  } else if (!session->has_loss()) {  // suppression finds nothing in scores that are NaN
    std::string cause = training::non_finite_weights(model);
    if (!cause.empty()) found = NonFiniteRows{.rows = report.total.rows, .first = 0, .cause = std::move(cause)};
  }
  return report;
}

}  // namespace gpunn
