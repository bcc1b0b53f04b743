// Network: the preparation of samples that belongs to its weights.
#include <gpunn/error.hpp>

#include <string>

#include "runs/preparation.hpp"
#include "storage/model_info.hpp"
#include "training/network.hpp"

namespace gpunn {

bool Network::Impl::is_prepared() const {
  return counter("step") > 0 || training::is_normalised(info.fields.input()) || !info.fields.target().mean.empty();
}

std::string Network::Impl::take_preparation(const ModelInfo& from) {
  std::string text = training::take_preparation(from, info);
  if (!experiment.data.mean.empty()) experiment.data.mean = info.fields.input().mean;
  if (!experiment.data.stddev.empty()) experiment.data.stddev = info.fields.input().stddev;
  learnt_task = from.task;
  return text;
}

bool Network::is_prepared() const { return impl_->is_prepared(); }
std::string Network::preparation() const { return storage::model_info_text(impl_->complete_info()); }
std::string Network::take_preparation(const std::string& description) {
  try {
    return impl_->take_preparation(storage::parse_model_info(description));
  } catch (const storage::ModelInfoFailure& failure) {
    throw Error(std::string("the description of the weights' samples is damaged: ") + failure.what(), ExitCode::usage);
  }
}
const std::string& Network::learnt_task() const { return impl_->learnt_task; }

}  // namespace gpunn
