#pragma once

#include <gpunn/profile.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "execution/backend.hpp"
#include "execution/steps/executable.hpp"
#include "execution/steps/variables.hpp"
#include "inference/engine/engine.hpp"
#include "inference/forward_program.hpp"
#include "inference/forward_weights.hpp"

namespace gpunn::inference {

// An array for one of the model's inputs, in the caller's memory. `samples` converts its numbers.
struct InputSource {
  const void* data = nullptr;
  const fields::Standardiser* samples = nullptr;
};

// An array of one of the model's outputs, in the caller's memory.
struct OutputTarget {
  std::size_t output = 0;  // of ForwardModel::output_variables()
  void* data = nullptr;
};

// The folded constants of a model's programs, which its contexts share. Each lies in the variables of the context that
// made it.
struct SharedConstants {
  std::mutex mutex;
  std::map<std::string, const execution::Variables*> owners;  // by name
};

// Throws OutOfMemory if a call of `rows` rows uses `bytes` more memory of the host, and less is `free`; 0 means
// unknown.
void require_call_memory(int64_t rows, uint64_t bytes, uint64_t free);

// The resources of one call at a time: an opened backend with a stream, the activations, and an executable for each
// number of rows so far. One thread at a time uses it.
class Context {
 public:
  // `first`, where given, has the weights, which this one uses too. No context runs any more when one of them goes.
  Context(const ForwardModel& model, std::unique_ptr<execution::Backend> backend, const Weights& weights,
          const Context* first);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  execution::Backend& backend() { return *backend_; }
  const execution::Variables& variables() const { return variables_; }
  uint64_t row_bytes(std::size_t output) const { return row_bytes_[output]; }

  // Allocates no device memory if an earlier call had the same number of rows. `inputs` are those of the model, in its
  // order.
  void run(int64_t rows, std::span<const InputSource> inputs, std::span<const OutputTarget> outputs);
  // Prepares the kernels for this many rows.
  void prepare(int64_t rows) { executable(rows); }
  // Seconds of the program alone, without copies: the median of groups of runs, each launched back to back and waited
  // for once, in about `seconds` together. Of the inputs of the last call.
  double time_program(int64_t rows, double seconds);
  // The times of its ops. Where `options` name no file, no trace is written.
  ProfileReport profile(int64_t rows, const ProfileOptions& options);
  // Bytes on the device: activations, and this context's own weights, constants and variables. Any thread may ask.
  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  execution::Executable& executable(int64_t rows);
  std::unique_ptr<execution::Executable> make_executable(int64_t rows);
  std::unique_ptr<execution::Executable> make_executable_of_file(int64_t rows);
  void count_memory();
  void write_constants(const Weights& weights);  // of an engine file
  void make_constants(const execution::CompiledProgram& making, const graph::Graph& program);
  // Of numbers of an input: the first one's place on the device is number `place`.
  void upload_input(std::size_t number, const InputSource& input, int64_t count, int64_t place);
  void run_prepared(execution::Executable& executable, int64_t rows, std::span<const InputSource> inputs,
                    std::span<const OutputTarget> outputs);

  const ForwardModel& model_;
  std::unique_ptr<execution::Backend> backend_;
  bool on_host_;  // its memory is the host's: nothing is staged
  execution::Variables variables_;
  std::shared_ptr<SharedConstants> constants_;
  std::vector<execution::Buffer> staged_inputs_, staged_outputs_;  // none where on_host_
  std::vector<uint64_t> row_bytes_;                                // of each output
  std::vector<const void*> output_addresses_;                      // on the device
  std::vector<void*> input_addresses_;                             // likewise
  execution::Buffer arena_;
  uint64_t used_bytes_ = 0;  // of activations, inputs and outputs, by the largest call so far
  std::atomic<uint64_t> memory_bytes_ = 0;
  std::vector<std::unique_ptr<execution::Executable>> executables_;  // by rows less one
};

}  // namespace gpunn::inference
