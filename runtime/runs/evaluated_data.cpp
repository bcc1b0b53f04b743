#include "runs/evaluated_data.hpp"

#include <gpunn/error.hpp>

#include <utility>

#include "feed/evaluation_part.hpp"
#include "runs/model_info.hpp"

namespace gpunn::training {

EvaluatedData load_evaluated(const TrainedFile& trained) {
  const storage::Checkpoint& checkpoint = trained.checkpoint;
  if (!trained.names_data && trained.experiment.data.dataset == kArrays) {
    throw Error(trained.file.string() +
                    ": an ONNX file does not name its data set. Name it with --data: a data set, as --data cifar10, or "
                    "an experiment, as --data photos.yaml",
                ExitCode::usage);
  }
  Dataset dataset = load_for(trained.experiment.data, EvaluationPart::test);
  // A file from elsewhere tells nothing of its classes.
  const bool is_told = checkpoint.model && (trained.names_data || !checkpoint.model->fields.target().names.empty());
  if (is_told) require_data_of(*checkpoint.model, dataset);
  take_scales(checkpoint, dataset);
  std::string notice = evaluated_data_notice(checkpoint, dataset);
  return {std::move(dataset), std::move(notice)};
}

}  // namespace gpunn::training
