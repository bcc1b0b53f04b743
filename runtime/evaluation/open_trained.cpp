#include "evaluation/open_trained.hpp"

#include <string>
#include <utility>

#include "config/checked_backends.hpp"
#include "runs/evaluated_data.hpp"
#include "runs/trained_model.hpp"

namespace gpunn::training {

std::unique_ptr<Session> open_trained(const TrainedModel& model, TrainingListener* listener) {
  TrainedFile trained = read_trained(model.path, model.overrides);
  auto [dataset, data_notice] = load_evaluated(trained);
  Experiment experiment = std::move(trained.experiment);
  experiment.backend = config::trained_backend(experiment.backend);
  auto session = std::make_unique<Session>(Session::open(experiment, std::move(dataset)));
  session->restore_parameters(trained.checkpoint);
  for (const std::string& notice : {session->notice(), data_notice}) {
    if (listener != nullptr && !notice.empty()) listener->on_message(notice);
  }
  return session;
}

}  // namespace gpunn::training
