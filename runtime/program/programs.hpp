#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/field.hpp>
#include <gpunn/tensor_type.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "program/batch_ops.hpp"
#include "program/division.hpp"
#include "program/layout.hpp"
#include "tasks/task.hpp"

namespace gpunn::training {

// Names of the variables that step programs share.
namespace variable {
inline constexpr const char* kParameters = "parameters";
inline constexpr const char* kBuffers = "buffers";  // of the model, where it has any
inline constexpr const char* kGradients = "gradients";
inline constexpr const char* kPartialGradients = "gradients.part";  // of a part of the batch, where they add up
inline constexpr const char* kWireGradients = "gradients.wire";     // as they pass between ranks, in half precision
inline constexpr const char* kPartBuffers = "buffers.part";         // of each part, where a step is divided
inline constexpr const char* kPass = "pass";    // i64 0-d: passes of a part of a batch through the model, likewise
inline constexpr const char* kAverage = "ema";  // of the parameters, where there is one
inline constexpr const char* kAverageBuffers = "ema.buffers";  // the buffers of that average
inline constexpr const char* kStep = "step";                   // i64 0-d: training steps done
inline constexpr const char* kPosition = "position";   // i64 0-d: steps done plus Sampling::shift, where it is not 0
inline constexpr const char* kEvalStep = "eval.step";  // i64 0-d: evaluation batches done
inline constexpr const char* kLearningRates = "learning_rates";  // f32[steps]
inline constexpr const char* kBatchStep = "batch.step";          // i64 0-d, and what follows: of batch_program
inline constexpr const char* kBatchSamples = "batch.kept";       // f32[batch, ...], normalised and augmented
inline const std::string kBatchFields = "batch.kept.";           // and the name of a field
inline constexpr const char* kBatchCount = "batch.kept_count";   // i32 0-d: rows that count
inline constexpr const char* kMixupShares = "mixup.shares";      // f32[steps]
// Of CutMix: f32[steps] each, as MixTables has them; and the numbers of an image's rows f32[1, 1, H, 1] and columns.
inline constexpr const char* kMixTargets = "cutmix.targets";
inline constexpr const char* kMixTop = "cutmix.top";
inline constexpr const char* kMixLeft = "cutmix.left";
inline constexpr const char* kMixBottom = "cutmix.bottom";
inline constexpr const char* kMixRight = "cutmix.right";
inline constexpr const char* kMixRows = "cutmix.rows";
inline constexpr const char* kMixColumns = "cutmix.columns";
inline constexpr const char* kLossHistory = "loss_history";      // f32[kLossHistorySize], by step modulo its size
inline constexpr const char* kGradientNorms = "gradient_norms";  // likewise, where they are recorded
inline constexpr const char* kLossScale = "loss_scale";          // f32 0-d each, in f16: loss_scale.hpp
inline constexpr const char* kGoodSteps = "loss_scale.good_steps";
inline constexpr const char* kSkippedSteps = "loss_scale.skipped_steps";
inline constexpr const char* kScale = "data.scale";         // f32[C], of samples as the device has them
inline constexpr const char* kShift = "data.shift";         // f32[C]
inline constexpr const char* kRawScale = "data.raw_scale";  // f32[C], of samples as the data set has them
inline constexpr const char* kRawShift = "data.raw_shift";  // f32[C]
inline constexpr const char* kPredictions = "predictions";  // f32 or i32 [batch, ...]: the task says what they are
inline constexpr const char* kRowScores = "rows.scores";    // f32[batch, outputs], what they are made of
inline constexpr const char* kRowLosses = "rows.losses";    // f32[batch]
}  // namespace variable

inline constexpr int64_t kLossHistorySize = 4096;

struct ProgramContext {
  const Experiment& experiment;
  const ParameterLayout& layout;
  const Schema& fields;  // of the data: the model's inputs, and what is learnt
  int64_t outputs = 0;   // that the data asks for: classes, labels or target columns
  int64_t total_steps = 0;
  ParameterLayout buffers = {};
  // Alignment of tensors on the device, in bytes. 0: unknown, and no tensor is placed inside another.
  uint64_t alignment = 0;
  const tasks::FrozenFeatures* frozen = nullptr;  // of a loss that compares images by their features
  Ranks ranks = {};
  bool shifted = false;  // Sampling::shift is not 0: the sampling has a counter of its own
  const tasks::Task& task() const { return tasks::find(experiment.task); }
  tasks::TaskContext of_task() const {
    // Parts that are added up in order pass one by one.
    return {experiment, outputs, frozen, experiment.micro_batches > 0 ? 1 : ranks.world, &fields.target()};
  }
};

// The variable of an accumulator: "totals", and of evaluations "eval.totals".
std::string accumulator_variable(tasks::Phase phase, const std::string& name);

// A split as the device has it: its samples, and the fields of the schema of which it has values. A split without any
// values, of batches that come later, has all of them.
SplitType split_type(const std::string& name, const Schema& schema, const Split& split);

// The rows of the batches: of a training, and of an evaluation or prediction.
Sampling training_sampling(const Experiment& experiment, const SplitType& split);
Sampling evaluation_sampling(const SplitType& split, int64_t batch);

// One training step: picks and normalises the batch, forward, loss, backward, optimizer, metrics, counters.
graph::Graph training_program(const ProgramContext& context, const SplitType& split);

// The batch of a training step as the model gets it, in variables, and nothing else.
graph::Graph batch_program(const ProgramContext& context, const SplitType& split);

// One batch of an evaluation, in the order of the rows. With several ranks, each takes its own batches in turn.
graph::Graph evaluation_program(const ProgramContext& context, const SplitType& split, int64_t batch);

// The same, with each row's scores, loss and prediction in variables whose names begin with `prefix`.
graph::Graph inspection_program(const ProgramContext& context, const SplitType& split, int64_t batch,
                                const std::string& prefix = "");

// The task's predictions for the split's rows, f32[batch, outputs], in variable kPredictions.

}  // namespace gpunn::training
