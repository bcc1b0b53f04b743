#include "conformance/training/kept_state.hpp"

#include <gpunn/error.hpp>

#include <utility>

namespace gpunn::conformance {

std::vector<storage::StoredTensor> state_of(training::Session& session) {
  storage::Checkpoint checkpoint;
  session.save_state(checkpoint);
  std::vector<storage::StoredTensor> tensors = std::move(checkpoint.parameters);
  for (storage::StoredTensor& tensor : checkpoint.buffers) tensors.push_back(std::move(tensor));
  for (auto& [name, states] : checkpoint.optimizer) {
    for (storage::StoredTensor& tensor : states) {
      tensor.name = name + " of " + tensor.name;
      tensors.push_back(std::move(tensor));
    }
  }
  for (storage::StoredTensor& tensor : checkpoint.state) tensors.push_back(std::move(tensor));
  const float loss = session.losses(session.step() - 1, session.step()).front();
  const auto* bytes = reinterpret_cast<const std::byte*>(&loss);
  tensors.push_back({"loss", {DType::f32, {}}, {bytes, bytes + sizeof(loss)}});
  return tensors;
}

std::unique_ptr<training::Session> open_training(const Experiment& experiment, CheckCase& result) {
  try {
    auto session = std::make_unique<training::Session>(training::Session::open(experiment));
    session->training();
    return session;
  } catch (const Error& error) {
    if (error.code() != ExitCode::missing) throw;
    result.verdict = Verdict::unsupported;
    result.detail = error.what();
    return nullptr;
  }
}

}  // namespace gpunn::conformance
