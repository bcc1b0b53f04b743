#pragma once

#include <gpunn/experiment.hpp>
#include <gpunn/model_info.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fields/standardise.hpp"
#include "graph/graph.hpp"
#include "inference/eight_bits/quantizers.hpp"
#include "inference/engine/fold_batch_norm.hpp"
#include "inference/engine/passes.hpp"
#include "program/layout.hpp"
#include "tasks/batch.hpp"

namespace gpunn::inference {

// Names of the variables of a forward program, besides those of the parameters and buffers. All have room for the
// largest batch. A program for fewer rows uses their first rows. Of several inputs and outputs, the second has the name
// of the first and ".1", and so on.
namespace variable {
inline constexpr const char* kInput = "input";
inline constexpr const char* kRows = "input.rows";  // i32[max_batch]: 0, 1, 2, ...
inline constexpr const char* kLogits = "logits";    // of the model's outputs
inline constexpr const char* kPredictions = "predictions";
std::string numbered(const char* name, std::size_t number);
}  // namespace variable

struct SavedEngine;

// An input of a model, as callers give it.
struct ForwardInput {
  std::string name;
  TensorType sample;
  std::vector<double> mean, stddev;  // for each channel or column; empty: the values stay as they are
  bool is_normalised() const { return !mean.empty(); }
};

// A trained model, from which forward programs are built.
struct ForwardModel {
  Experiment experiment;
  ModelInfo info;
  std::vector<ForwardInput> inputs;  // in the order of the model's
  training::ParameterLayout layout, buffers;
  int64_t max_batch = 1;
  uint64_t alignment = 1;  // of tensors on the device, in bytes
  EnginePasses passes;     // that its programs go through
  // Of tensors_to_quantize(), in that order, for a FAKE_QUANTIZE behind each. Empty: none are placed.
  std::vector<Quantizer> quantizers;
  std::shared_ptr<const SavedEngine> saved;  // of an engine file, whose programs are taken; nullptr: there is none
  // Whether the outputs are known by names, of which the task makes predictions; else there are only logits.
  bool has_task() const { return !info.fields.target().names.empty(); }
  // The variables of the model's outputs, in their order, and behind them that of the predictions.
  std::vector<std::string> output_variables() const;
};

// Brings samples of this type, as callers have them, to the device as the forward program takes them.
fields::Standardiser input_standardiser(const ForwardInput& input, DType samples);
// Whether an input takes samples of this type: its own, or f64 for f32.
bool takes_samples(const ForwardInput& input, DType samples);

// Throws Error where the checkpoint's normalisation, or that of the overrides, is for another number of channels.
ForwardModel forward_model(Experiment experiment, ModelInfo info, uint64_t alignment, int64_t max_batch);

// The type of so many rows.
TensorType forward_rows(const TensorType& row, int64_t rows);

// A variable by its name, which is also a layer's where that is called so: a layer's value has another storage.
// kNoValue: there is none.
graph::ValueId find_variable(const graph::Graph& program, const std::string& name,
                             graph::Storage storage = graph::Storage::state);

// The type of one row of an output.
TensorType output_row(const graph::Graph& program, const std::string& output);

// Normalises the first `rows` rows of the inputs and computes the outputs from them. The weights that it wants are
// those that fold_weights() makes of the norms, which are the same for any number of rows.
struct ForwardProgram {
  graph::Graph graph;
  std::vector<FoldedNorm> norms;
  // Values of the graph. Those of layers are as the model has them where no batch norm is folded and nothing is stored
  // in half precision.
  tasks::ModelOutputs outputs;
  std::vector<EightBitOp> eight_bits;
};
// Which batch norms stay ops of their own. folded: those that can't be folded, or all without the model's pass.
enum class BatchNorms { folded, kept };
// With a backend, convolutions between quantizers run in eight bits where it can, if the model has that pass.
ForwardProgram forward_program(const ForwardModel& model, int64_t rows, BatchNorms norms = BatchNorms::folded,
                               const execution::Backend* eight_bits_on = nullptr);

}  // namespace gpunn::inference
