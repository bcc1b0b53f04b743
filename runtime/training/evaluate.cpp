#include <gpunn/training.hpp>

#include "training/trained_model.hpp"

namespace gpunn {

EvalReport evaluate(const TrainedModel& model, TrainingListener* listener) {
  return training::open_trained(model, listener)->evaluate();
}

}  // namespace gpunn
