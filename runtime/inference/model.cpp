#include "nn/model.hpp"

#include <gpunn/error.hpp>
#include <gpunn/model.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "common/text.hpp"
#include "inference/context.hpp"
#include "inference/engine_file/saved_engine.hpp"
#include "inference/explanation/explainer.hpp"
#include "inference/open_model.hpp"
#include "inference/results/decoded_rows.hpp"
#include "inference/results/number_outputs.hpp"
#include "plugins/plugin.hpp"
#include "runs/model_info.hpp"
#include "runs/trained_model.hpp"
#include "session/open_backend.hpp"
#include "tasks/task.hpp"
#include "training/network.hpp"

namespace gpunn {

using inference::Context;
using inference::ForwardModel;
using inference::InputSource;
using inference::OutputTarget;
using inference::Weights;

namespace {

constexpr int64_t kUsualCalls = 8;

std::string shape_text(DType dtype, std::span<const int64_t> shape) {
  return to_string(TensorType{dtype, {shape.begin(), shape.end()}});
}

std::string expected_text(const TensorType& row) {
  std::string text = to_string(row);
  const std::size_t bracket = text.find('[');
  return text.substr(0, bracket + 1) + (row.shape.empty() ? "rows" : "rows, ") + text.substr(bracket + 1);
}

// Where `name` is among the tensors; an empty name is the first.
std::size_t find_tensor(const std::vector<ModelTensor>& tensors, std::string_view name, const char* kind) {
  if (name.empty()) return 0;
  const auto found = std::ranges::find(tensors, name, &ModelTensor::name);
  if (found != tensors.end()) return static_cast<std::size_t>(found - tensors.begin());
  std::vector<std::string> names;
  for (const ModelTensor& tensor : tensors) names.push_back(tensor.name);
  throw Error("the model has no " + std::string(kind) + " " + in_quotes(name) + did_you_mean_or_list(name, names),
              ExitCode::usage);
}

// Allocates nothing where all is well.
void require_array(const ModelTensor& tensor, const char* kind, bool right_type, DType dtype,
                   std::span<const int64_t> shape, const void* data) {
  const Shape& row = tensor.row.shape;
  const bool fits =
      right_type && shape.size() == row.size() + 1 && std::ranges::equal(shape.subspan(1), std::span(row));
  if (fits && data != nullptr) return;
  throw Error("the model's " + std::string(kind) + " " + in_quotes(tensor.name) + ": expected " +
                  expected_text(tensor.row) + ", found " + shape_text(dtype, shape) +
                  (fits ? " at the address null" : ""),
              ExitCode::usage);
}

}  // namespace

class Model::Impl {
 public:
  Impl(const storage::Checkpoint& checkpoint, const std::filesystem::path& file, Experiment experiment,
       const ModelOptions& options)
      : most_calls_(options.calls > 0 ? static_cast<std::size_t>(options.calls) : usual_calls()) {
    std::unique_ptr<execution::Backend> backend =
        take_opened(inference::open_model(checkpoint, file, std::move(experiment), options));
    const inference::ForwardProgram program = inference::forward_program(model_, 1);
    weights_ = inference::forward_weights(model_, program, checkpoint, file);
    name_tensors(program.graph);
    open_first(std::move(backend));
    // A gradient with respect to a layer in front of a folded batch norm needs the weights before they were folded.
    const bool is_folded = !program.norms.empty();
    explainer_ = std::make_unique<inference::Explainer>(
        model_,
        is_folded ? inference::forward_weights(
                        model_, inference::forward_program(model_, 1, inference::BatchNorms::kept), checkpoint, file)
                  : weights_,
        contexts_.front()->variables(), [this](const Experiment& explained) {
          return training::open_backend(explained, *registry_, explained.backend);
        });
  }
  // Of an engine file.
  Impl(inference::OpenedModel opened, const ModelOptions& options)
      : most_calls_(options.calls > 0 ? static_cast<std::size_t>(options.calls) : usual_calls()) {
    weights_ = std::move(opened.weights);
    std::unique_ptr<execution::Backend> backend = take_opened(std::move(opened));
    name_tensors(model_.saved->programs.begin()->second.graph);
    open_first(std::move(backend));
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  // The first has the weights of the others.
  ~Impl() {
    explainer_.reset();
    while (!contexts_.empty()) contexts_.pop_back();
  }

  const ForwardModel& model() const { return model_; }
  const std::vector<ModelTensor>& inputs() const { return inputs_; }
  const std::vector<ModelTensor>& outputs() const { return outputs_; }
  const std::string& backend() const { return backend_; }
  const std::string& device() const { return device_; }

  uint64_t memory_bytes() {
    const std::lock_guard lock(mutex_);
    uint64_t bytes = 0;
    for (const auto& context : contexts_) bytes += context->memory_bytes();
    return bytes;
  }

  void run(std::span<const ArrayView> inputs, std::span<const MutableArrayView> outputs) {
    std::array<InputSource, kMostTensors> sources;
    const int64_t rows = take_inputs(inputs, sources);
    std::array<OutputTarget, kMostTensors> targets;
    if (outputs.size() > targets.size()) {
      throw Error("the model has " + std::to_string(outputs_.size()) + " outputs, and " +
                      std::to_string(outputs.size()) + " are asked for",
                  ExitCode::usage);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const MutableArrayView& output = outputs[i];
      const std::size_t which = find_tensor(outputs_, output.name, "output");
      const DType own = outputs_[which].row.dtype;
      const bool right = output.dtype == own || (own == DType::f64 && output.dtype == DType::f32);
      require_array(outputs_[which], "output", right, output.dtype, output.shape, output.data);
      if (output.shape.front() != rows) {
        throw Error("the output " + in_quotes(outputs_[which].name) + " has room for " +
                        std::to_string(output.shape.front()) + " rows, the input has " + std::to_string(rows),
                    ExitCode::usage);
      }
      targets[i] = {.output = which, .data = inference::place_of_scaled(output)};
    }
    Lease lease(*this);
    try {
      lease->run(rows, std::span(sources).first(inputs.size()), std::span(targets).first(outputs.size()));
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (outputs_[targets[i].output].row.dtype != DType::f64) continue;
        inference::write_in_data_units(model_.info, outputs[i]);
      }
    } catch (const DeviceLostError& error) {
      fail(error.what());
      throw;
    }
  }

  std::vector<Explanation> explain(const ArrayView& input, std::span<const float> scores,
                                   const ExplainOptions& options) {
    if (explainer_ == nullptr) {
      throw Error("an engine file has no program that explains; explain the model that it was made of",
                  ExitCode::usage);
    }
    const std::lock_guard lock(explaining_);
    try {
      return explainer_->explain(input, scores, options);
    } catch (const DeviceLostError& error) {
      fail(error.what());
      throw;
    }
  }

 private:
  static constexpr std::size_t kMostTensors = 65;  // inputs or outputs of a call: those of a model and its predictions

  // The number of rows of a call's inputs, in the order of the model's. Allocates nothing where all is well.
  int64_t take_inputs(std::span<const ArrayView> inputs, std::span<InputSource> sources) const {
    if (inputs.size() != inputs_.size()) {
      std::vector<std::string> names;
      for (const ModelTensor& input : inputs_) names.push_back(in_quotes(input.name));
      throw Error((inputs_.size() == 1 ? "the model takes one input, " : "the model takes the inputs ") +
                      join(names, ", ") + ", found " + std::to_string(inputs.size()),
                  ExitCode::usage);
    }
    for (const ArrayView& input : inputs) {
      if (input.name.empty() && inputs_.size() > 1) {
        throw Error("the model takes " + std::to_string(inputs_.size()) + " inputs, and one that is given has no name",
                    ExitCode::usage);
      }
      const std::size_t which = find_tensor(inputs_, input.name, "input");
      const ModelTensor& tensor = inputs_[which];
      const bool right_type = inference::takes_samples(model_.inputs[which], input.dtype);
      require_array(tensor, "input", right_type, input.dtype, input.shape, input.data);
      if (sources[which].data != nullptr) {
        throw Error("the input " + in_quotes(tensor.name) + " is given twice", ExitCode::usage);
      }
      sources[which] = {input.data, &(input.dtype == DType::f64 ? from_f64_ : from_own_)[which]};
      if (input.shape.front() != inputs.front().shape.front()) {
        throw Error("the input " + in_quotes(tensor.name) + " has " + std::to_string(input.shape.front()) +
                        " rows, another one has " + std::to_string(inputs.front().shape.front()),
                    ExitCode::usage);
      }
    }
    const int64_t rows = inputs.front().shape.front();
    if (rows < 1 || rows > model_.max_batch) {
      throw Error("a call brings 1 to " + std::to_string(model_.max_batch) + " rows, as max_batch says; found " +
                      std::to_string(rows),
                  ExitCode::usage);
    }
    return rows;
  }

  // A context for the time of one call.
  class Lease {
   public:
    explicit Lease(Impl& model) : model_(model), context_(model.take()) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { model_.give(context_); }
    Context* operator->() const { return context_; }

   private:
    Impl& model_;
    Context* context_;
  };

  static std::size_t usual_calls() {
    return static_cast<std::size_t>(std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, kUsualCalls));
  }

  // Gives back the backend.
  std::unique_ptr<execution::Backend> take_opened(inference::OpenedModel opened) {
    registry_ = std::move(opened.registry);
    model_ = std::move(opened.model);
    backend_ = opened.backend->name();
    device_ = opened.backend->info().name;
    return std::move(opened.backend);
  }

  void open_first(std::unique_ptr<execution::Backend> backend) {
    contexts_.reserve(most_calls_);
    idle_.reserve(most_calls_);
    contexts_.push_back(std::make_unique<Context>(model_, std::move(backend), weights_, nullptr));
    idle_.push_back(contexts_.front().get());
    weights_.parameters = {};  // the others use those of the first
    weights_.buffers = {};
    weights_.constants = {};
  }

  void name_tensors(const graph::Graph& program) {
    for (const inference::ForwardInput& input : model_.inputs) {
      inputs_.push_back({input.name, input.sample});
      from_own_.push_back(inference::input_standardiser(input, input.sample.dtype));
      from_f64_.push_back(inference::input_standardiser(input, DType::f64));
    }
    const std::array<const char*, 2> of_task = tasks::find(model_.info.task).answers().outputs;
    std::vector<std::string> names;
    for (const OutputSpec& output : model_.experiment.model.outputs) names.push_back(output.name);
    if (names.empty()) names.emplace_back(model_.has_task() ? of_task[0] : "outputs");
    if (model_.has_task()) names.emplace_back(of_task[1]);
    const std::vector<std::string> variables = model_.output_variables();
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (std::ranges::find(outputs_, names[i], &ModelTensor::name) != outputs_.end()) {
        throw Error("the model has an output " + in_quotes(names[i]) + ", which is the name of its predictions",
                    ExitCode::usage);
      }
      outputs_.push_back({names[i], inference::output_row(program, variables[i])});
    }
    if (model_.has_task() && !model_.info.fields.target().mean.empty()) outputs_.back().row.dtype = DType::f64;
  }

  std::unique_ptr<Context> open_context(const Context* first) const {
    return std::make_unique<Context>(
        model_, training::open_backend(model_.experiment, *registry_, model_.experiment.backend), weights_, first);
  }

  // The one given back last, which the caches know best; else a new one, or where there are as many as may be, the next
  // that is given back.
  Context* take() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (!failure_.empty()) {
        throw DeviceLostError("the model can't be used any more, since its device failed in an earlier call: " +
                              failure_);
      }
      if (!idle_.empty()) {
        Context* const context = idle_.back();
        idle_.pop_back();
        return context;
      }
      if (contexts_.size() + opening_ < most_calls_) {
        if (Context* const context = open_another(lock)) return context;
        continue;
      }
      given_.wait(lock);
    }
  }

  // nullptr: there is no memory for another, and there will be no other attempt.
  Context* open_another(std::unique_lock<std::mutex>& lock) {
    const Context* const first = contexts_.front().get();
    ++opening_;
    lock.unlock();
    std::unique_ptr<Context> context;
    std::exception_ptr error;
    try {
      context = open_context(first);
    } catch (const execution::OutOfMemory&) {
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --opening_;
    if (error != nullptr) {
      given_.notify_all();  // others may have waited for this one
      std::rethrow_exception(error);
    }
    if (context == nullptr) {
      most_calls_ = contexts_.size();
      return nullptr;
    }
    contexts_.push_back(std::move(context));
    return contexts_.back().get();
  }

  void give(Context* context) noexcept {
    {
      const std::lock_guard lock(mutex_);
      idle_.push_back(context);  // there is room: reserved
    }
    given_.notify_one();
  }

  void fail(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why;
  }

  ForwardModel model_;
  std::unique_ptr<plugins::PluginRegistry> registry_;
  Weights weights_;
  std::vector<ModelTensor> inputs_, outputs_;
  std::vector<fields::Standardiser> from_own_, from_f64_;  // of each input in its own type, and in f64
  std::string backend_, device_;

  std::mutex mutex_;
  std::condition_variable given_;
  std::size_t most_calls_, opening_ = 0;
  std::vector<std::unique_ptr<Context>> contexts_;
  std::vector<Context*> idle_;
  std::string failure_;  // of the device

  std::mutex explaining_;
  std::unique_ptr<inference::Explainer> explainer_;
};

Model::Model(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Model::Model(const Model&) noexcept = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(const Model&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Model Model::load(const std::filesystem::path& path, const ModelOptions& options) {
  inference::check_options(options);
  if (inference::is_engine(path)) {
    return Model(std::make_shared<Impl>(inference::open_engine(path, options), options));
  }
  training::TrainedFile trained = training::read_trained(path, options.overrides, options.image_size);
  return Model(std::make_shared<Impl>(trained.checkpoint, trained.file,
                                      inference::with_options(std::move(trained.experiment), options), options));
}

Model Network::model(const ModelOptions& options) const {
  inference::check_options(options);
  if (!options.overrides.empty()) {
    throw Error("ModelOptions.overrides are for Model::load; a network has its settings from Network::set",
                ExitCode::usage);
  }
  return Model(std::make_shared<Model::Impl>(impl_->checkpoint(), impl_->experiment.file,
                                             inference::with_options(impl_->experiment, options), options));
}

const ModelInfo& Model::info() const { return impl_->model().info; }
const Experiment& Model::experiment() const { return impl_->model().experiment; }
const std::vector<ModelTensor>& Model::inputs() const { return impl_->inputs(); }
const std::vector<ModelTensor>& Model::outputs() const { return impl_->outputs(); }
int64_t Model::max_batch() const { return impl_->model().max_batch; }
std::string Model::backend() const { return impl_->backend(); }
std::string Model::device() const { return impl_->device(); }
uint64_t Model::memory_bytes() const { return impl_->memory_bytes(); }

void Model::run(std::span<const ArrayView> inputs, std::span<const MutableArrayView> outputs) const {
  const std::shared_ptr<Impl> held = impl_;  // another thread may destroy its handle, or assign to this one's source
  held->run(inputs, outputs);
}

std::vector<Decoded> Model::predict(std::span<const ArrayView> inputs, int64_t top, bool map_probabilities) const {
  if (top < 1) throw Error("top must be at least 1, is " + std::to_string(top), ExitCode::usage);
  const TensorType& predicted = outputs().back().row;
  if (info().fields.target().names.empty()) {
    throw Error("the outputs of this model have no names that a prediction could tell; call run()", ExitCode::usage);
  }
  const int64_t rows = inputs.empty() || inputs.front().shape.empty() ? 0 : inputs.front().shape.front();
  if (rows > max_batch()) run(inputs, {});  // which refuses it
  const Shape shape = batch_shape(predicted.shape, rows);
  std::vector<std::byte> numbers(static_cast<std::size_t>(std::max<int64_t>(rows, 0)) * predicted.bytes());
  const MutableArrayView output{
      .name = outputs().back().name, .dtype = predicted.dtype, .shape = shape, .data = numbers.data()};
  run(inputs, {&output, 1});
  return inference::decoded_rows(info(), predicted, numbers, {.top = top, .map_probabilities = map_probabilities});
}

std::vector<Explanation> Model::explain(const ArrayView& input, const ExplainOptions& options) const {
  const std::shared_ptr<Impl> held = impl_;
  const ModelTensor& image = held->inputs().front();
  const ModelTensor& told = held->outputs().back();
  const tasks::Answers answers = tasks::find(held->model().info.task).answers();
  const bool is_only = held->inputs().size() == 1;
  if (image.row.shape.size() != 3 || told.row.shape.size() != 1 || !answers.named || !is_only) {
    throw Error("maps are of models that tell numbers of an image [C, H, W] alone; this one tells " +
                    to_string(told.row) + " of " + to_string(image.row) + (is_only ? "" : " and other inputs"),
                ExitCode::usage);
  }
  const int64_t classes = told.row.shape.front();
  if (options.class_index && (*options.class_index < 0 || *options.class_index >= classes)) {
    throw Error("the model has no class " + std::to_string(*options.class_index) + "; classes count from 0 to " +
                    std::to_string(classes - 1),
                ExitCode::usage);
  }
  const int64_t rows = input.shape.empty() ? 0 : input.shape.front();
  if (rows < 1 || rows > max_batch()) held->run({&input, 1}, {});  // which refuses it
  std::vector<float> scores(static_cast<std::size_t>(rows * classes));
  const std::array<int64_t, 2> shape = {rows, classes};
  const MutableArrayView output{.name = told.name, .dtype = DType::f32, .shape = shape, .data = scores.data()};
  held->run({&input, 1}, {&output, 1});
  std::vector<Explanation> explanations = held->explain(input, scores, options);
  for (Explanation& one : explanations) {
    one.is_probability = held->model().has_task() && answers.probabilities;
    if (!info().fields.target().names.empty())
      one.class_name = info().fields.target().names[static_cast<std::size_t>(one.class_index)];
  }
  return explanations;
}

}  // namespace gpunn
