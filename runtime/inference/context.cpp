#include "inference/context.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

#include "common/host_memory.hpp"
#include "common/parallel.hpp"
#include "common/text.hpp"
#include "execution/measurement/profiler.hpp"
#include "execution/steps/compiler.hpp"
#include "inference/engine_file/saved_engine.hpp"
#include "program/programs.hpp"

namespace gpunn::inference {

using graph::Storage;

namespace {

// What a call reads before it can be captured and launched: once for the kernels' own preparations, once to capture.
constexpr int kRunsToPrepare = 2;
// An input goes into pinned memory in pieces: while one is copied there, those before it are on their way to the
// device. A thread copies about 10 GB/s, a device takes up to 50, so that large arrays want several.
constexpr int64_t kCopyPiece = 512 * 1024;
constexpr int64_t kLargeArray = 4 * 1024 * 1024;
constexpr int64_t kCopyThreads = 8;
constexpr uint64_t kNotWorthALook = uint64_t{64} << 20;  // at the free memory of the system

// Calls copy(first, last) for pieces of an array, on several threads if it is large.
void copy_in_pieces(uint64_t bytes, const std::function<void(int64_t first, int64_t last)>& copy) {
  const auto end = static_cast<int64_t>(bytes);
  for_row_stretches(end, kCopyPiece, copy, end < kLargeArray ? 1 : kCopyThreads);
}

void copy_array(void* to, const void* from, uint64_t bytes) {
  if (bytes < static_cast<uint64_t>(kLargeArray)) {
    std::memcpy(to, from, bytes);
    return;
  }
  copy_in_pieces(bytes, [&](int64_t first, int64_t last) {
    std::memcpy(static_cast<std::byte*>(to) + first, static_cast<const std::byte*>(from) + first,
                static_cast<std::size_t>(last - first));
  });
}

template <class T>
void write_values(execution::Variables& variables, const char* name, const TensorType& type, Storage storage,
                  const std::vector<T>& values) {
  variables.create(name, type, storage);
  variables.write(name, std::as_bytes(std::span(values)));
}

}  // namespace

Context::Context(const ForwardModel& model, std::unique_ptr<execution::Backend> backend, const Weights& weights,
                 const Context* first)
    : model_(model),
      backend_(std::move(backend)),
      on_host_(std::string_view(backend_->info().memory_domain) == "host"),
      variables_(*backend_),
      constants_(first != nullptr ? first->constants_ : std::make_shared<SharedConstants>()),
      executables_(static_cast<std::size_t>(model.max_batch)) {
  // The largest batch sizes the arena; it is also the one that tells whether every op is served and there is memory.
  const execution::CompiledProgram largest = build_engine(model_, model_.max_batch, *backend_).program;
  const auto fill = [&](const char* name, const training::ParameterLayout& layout, Storage storage,
                        const std::vector<float>& values) {
    if (layout.total == 0) return;
    if (first != nullptr) return variables_.share(name, first->variables_);
    write_values(variables_, name, layout.type(), storage, values);
  };
  fill(training::variable::kParameters, model_.layout, Storage::parameters, weights.parameters);
  fill(training::variable::kBuffers, model_.buffers, Storage::state, weights.buffers);
  if (model_.saved != nullptr) write_constants(weights);
  write_inputs(variables_, model_, weights);
  for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
    const std::string name = variable::numbered(variable::kInput, i);
    input_addresses_.push_back(variables_.data(name));
    if (on_host_) continue;
    staged_inputs_.push_back(backend_->allocate(variables_.type(name).bytes(), GPUNN_MEMORY_PINNED));
  }
  for (const std::string& name : model_.output_variables()) {
    const TensorType row = output_row(largest.graph, name);
    const TensorType type = forward_rows(row, model_.max_batch);
    row_bytes_.push_back(row.bytes());
    output_addresses_.push_back(variables_.create(name, type, Storage::state));
    if (!on_host_) staged_outputs_.push_back(backend_->allocate(type.bytes(), GPUNN_MEMORY_PINNED));
  }
  arena_ = backend_->allocate(largest.plan.arena_bytes);
  count_memory();
}

Context::~Context() {
  try {
    backend_->synchronize();         // nothing is freed that is still in use
  } catch (const std::exception&) {  // a lost device uses nothing
  }
}

execution::Executable& Context::executable(int64_t rows) {
  if (model_.saved != nullptr) rows = model_.saved->planned_rows(rows);
  auto& kept = executables_[static_cast<std::size_t>(rows - 1)];
  if (kept == nullptr && model_.saved != nullptr) {
    kept = make_executable_of_file(rows);
  } else if (kept == nullptr) {
    kept = make_executable(rows);
  }
  return *kept;
}

// What kernels refuse is the file's mistake.
std::unique_ptr<execution::Executable> Context::make_executable_of_file(int64_t rows) {
  try {
    return make_executable(rows);
  } catch (const DeviceLostError&) {
    throw;
  } catch (const execution::OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    throw Error(model_.saved->file + ": its program for " + std::to_string(rows) +
                    " rows does not run here: " + error.what() + "; write it anew with 'gpunn export'",
                error.code());
  }
}

void Context::make_constants(const execution::CompiledProgram& making, const graph::Graph& program) {
  if (making.graph.nodes().empty()) return;
  const std::lock_guard lock(constants_->mutex);
  bool missing = false;
  for (const graph::Node& node : making.graph.nodes()) {
    for (const graph::ValueId output : node.outputs) {
      const graph::Value& value = program.value(output);
      if (value.storage == Storage::arena || variables_.contains(value.name)) continue;
      if (const auto owner = constants_->owners.find(value.name); owner != constants_->owners.end()) {
        variables_.share(value.name, *owner->second);
        continue;
      }
      variables_.create(value.name, value.type, value.storage);
      missing = true;
    }
  }
  if (!missing) return;
  // Those that are there already are kept: others may be reading them.
  execution::CompiledProgram rest = making;
  std::erase_if(rest.graph.nodes(), [&](const graph::Node& node) {
    return std::ranges::all_of(node.outputs, [&](graph::ValueId id) {
      const graph::Value& value = program.value(id);
      return value.storage != Storage::arena && constants_->owners.contains(value.name);
    });
  });
  remove_dead_ops(rest.graph);
  rest = execution::place_and_plan(std::move(rest.graph), *backend_, execution::FuseSubgraphs::none);
  const execution::Buffer arena = backend_->allocate(rest.plan.arena_bytes);
  execution::Executable(*backend_, variables_, rest.graph, rest.plan, arena.data()).run();
  backend_->synchronize();
  for (const graph::Node& node : rest.graph.nodes()) {
    for (const graph::ValueId output : node.outputs) {
      if (program.value(output).storage != Storage::arena) {
        constants_->owners.emplace(program.value(output).name, &variables_);
      }
    }
  }
}

void Context::write_constants(const Weights& weights) {
  const std::lock_guard lock(constants_->mutex);
  for (const auto& [name, owner] : constants_->owners) variables_.share(name, *owner);
  for (const storage::StoredTensor& constant : weights.constants) {
    if (variables_.contains(constant.name)) continue;
    variables_.create(constant.name, constant.type, Storage::state);
    variables_.write(constant.name, constant.values);
    constants_->owners.emplace(constant.name, &variables_);
  }
}

void require_call_memory(int64_t rows, uint64_t bytes, uint64_t free) {
  if (free == 0 || bytes <= free) return;
  throw execution::OutOfMemory("calls of " + std::to_string(rows) + " rows need " + human_bytes(bytes) +
                               " of memory, and " + human_bytes(free) + " are free; give fewer rows in a call");
}

void Context::count_memory() {
  uint64_t bytes = arena_.bytes();
  for (const Storage storage : {Storage::parameters, Storage::state, Storage::data}) bytes += variables_.bytes(storage);
  memory_bytes_ = bytes;
}

std::unique_ptr<execution::Executable> Context::make_executable(int64_t rows) {
  const EngineProgram engine = build_engine(model_, rows, *backend_);
  const execution::CompiledProgram& program = engine.program;
  make_constants(engine.constants, program.graph);
  if (program.plan.arena_bytes > arena_.bytes()) {  // fewer rows may take other kernels, with more scratch memory
    for (auto& bound : executables_) bound.reset();
    arena_ = {};
    used_bytes_ = 0;
    arena_ = backend_->allocate(program.plan.arena_bytes);
  }
  uint64_t row_bytes = 0;
  for (const ForwardInput& input : model_.inputs) row_bytes += input.sample.bytes();
  for (const uint64_t bytes : row_bytes_) row_bytes += bytes;
  const uint64_t needed = program.plan.arena_bytes + static_cast<uint64_t>(rows) * row_bytes;
  // The operating system promises more memory than it has, and ends a process that uses it.
  if (on_host_ && needed > used_bytes_ + kNotWorthALook) {
    require_call_memory(rows, needed - used_bytes_, free_physical_memory());
  }
  used_bytes_ = std::max(used_bytes_, needed);
  auto made = std::make_unique<execution::Executable>(*backend_, variables_, program, arena_.data());
  for (int i = 0; i < kRunsToPrepare; ++i) made->run();
  backend_->synchronize();
  count_memory();
  return made;
}

void Context::run(int64_t rows, std::span<const InputSource> inputs, std::span<const OutputTarget> outputs) {
  execution::Executable& prepared = executable(rows);
  try {
    run_prepared(prepared, rows, inputs, outputs);
  } catch (...) {
    try {
      backend_->synchronize();         // the staging memory is the next call's
    } catch (const std::exception&) {  // the first error is the one to tell
    }
    throw;
  }
}

void Context::upload_input(std::size_t number, const InputSource& input, int64_t count, int64_t place) {
  const fields::Standardiser& samples = *input.samples;
  const auto size = static_cast<int64_t>(size_of(model_.inputs[number].sample.dtype));
  auto* const to = static_cast<std::byte*>(input_addresses_[number]) + place * size;
  const auto* const from = static_cast<const std::byte*>(input.data);
  const auto convert = [&](std::byte* target, int64_t first, int64_t last) {
    samples.convert(from + first * samples.size(), first, last - first, target + first * size);
  };
  const bool large = count * size >= kLargeArray;
  const auto in_pieces = [&](const std::function<void(int64_t first, int64_t last)>& copy) {
    for_row_stretches(count, kCopyPiece / size, copy, large ? kCopyThreads : 1);
  };
  if (on_host_) {
    if (!large) return convert(to, 0, count);
    return in_pieces([&](int64_t first, int64_t last) { convert(to, first, last); });
  }
  auto* const staged = static_cast<std::byte*>(staged_inputs_[number].data()) + place * size;
  std::mutex stream;
  in_pieces([&](int64_t first, int64_t last) {
    convert(staged, first, last);
    const std::lock_guard lock(stream);
    backend_->enqueue_upload(to + first * size, staged + first * size, static_cast<uint64_t>((last - first) * size));
  });
}

void Context::run_prepared(execution::Executable& executable, int64_t rows, std::span<const InputSource> inputs,
                           std::span<const OutputTarget> outputs) {
  const auto count = static_cast<uint64_t>(rows);
  const int64_t planned = model_.saved != nullptr ? model_.saved->planned_rows(rows) : rows;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const int64_t row = model_.inputs[i].sample.elements();
    upload_input(i, inputs[i], rows * row, 0);
    // An engine computes more rows than the call has. Layers that combine the rows of a batch must not see an earlier
    // call's there.
    for (int64_t extra = rows; extra < planned; ++extra) upload_input(i, inputs[i], row, extra * row);
  }
  executable.run();
  if (!on_host_) {
    for (const OutputTarget& target : outputs) {
      backend_->enqueue_download(staged_outputs_[target.output].data(), output_addresses_[target.output],
                                 count * row_bytes_[target.output]);
    }
  }
  backend_->synchronize();
  for (const OutputTarget& target : outputs) {
    const void* const from = on_host_ ? output_addresses_[target.output] : staged_outputs_[target.output].data();
    copy_array(target.data, from, count * row_bytes_[target.output]);
  }
}

double Context::time_program(int64_t rows, double seconds) {
  execution::Executable& prepared = executable(rows);
  const auto timed = [&](int64_t times) {
    const auto begin = std::chrono::steady_clock::now();
    prepared.run(times);
    backend_->synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  // Long enough that waiting does not count, short enough that most are not interrupted.
  constexpr double kGroupSeconds = 2e-3;
  constexpr int64_t kFewest = 10, kMost = 10'000;
  const double once = timed(kFewest) / kFewest;
  const auto times =
      static_cast<int64_t>(std::clamp(kGroupSeconds / std::max(once, 1e-9), double{kFewest}, double{kMost}));
  std::vector<double> groups;
  for (double spent = 0; groups.empty() || spent < seconds; spent += groups.back()) groups.push_back(timed(times));
  const auto middle = groups.begin() + std::ssize(groups) / 2;
  std::ranges::nth_element(groups, middle);
  return *middle / static_cast<double>(times);
}

ProfileReport Context::profile(int64_t rows, const ProfileOptions& options) {
  execution::Executable& whole = executable(rows);  // it also makes the constants
  const execution::CompiledProgram program = build_engine(model_, rows, *backend_).program;
  const compiler::MemoryPlan plan =
      program.subgraphs.taken.empty() ? program.plan : execution::plan_op_by_op(program, *backend_);
  const execution::Buffer arena = backend_->allocate(plan.arena_bytes);
  execution::Executable op_by_op(*backend_, variables_, program.graph, plan, arena.data());
  execution::Profiler profiler(options);
  profiler.attach(*backend_);
  while (!profiler.finished()) profiler.step(whole, op_by_op, program);
  profiler.detach();
  if (!options.file.empty()) profiler.write(options.file);
  ProfileReport report = profiler.report();
  report.file = options.file;
  return report;
}

}  // namespace gpunn::inference
