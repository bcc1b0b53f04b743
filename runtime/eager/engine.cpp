#include <gpunn/error.hpp>
#include <gpunn/ops.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <pthread.h>

#include "common/text.hpp"
#include "eager/op.hpp"
#include "eager/plan.hpp"
#include "execution/measurement/kernel_times.hpp"
#include "plugins/plugin.hpp"

namespace gpunn::eager {

namespace {

// Not even an empty tensor has the address NULL. Its memory is not touched, so that it need not be the device's.
alignas(4096) std::byte of_empty{};

// How many forks are between this process and the one that loaded the library. A system call for each op takes longer.
int forks() {
  static std::atomic<int> count{0};
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++count; });
  static_cast<void>(registered);
  return count;
}

// A mask of externals has a bit for each.
constexpr std::size_t kMostExternals = 64;

void append_bytes(std::string& key, const void* bytes, std::size_t count) {
  key.append(static_cast<const char*>(bytes), count);
}

template <class T>
void append_value(std::string& key, T value) {
  append_bytes(key, &value, sizeof(value));
}

void append_type(std::string& key, const TensorType& type) {
  append_value(key, static_cast<uint8_t>(type.dtype));
  append_value(key, static_cast<uint8_t>(type.layout));
  append_value(key, static_cast<uint8_t>(type.shape.size()));
  append_bytes(key, type.shape.data(), type.shape.size() * sizeof(int64_t));
}

bool overlap(const Array& a, const Array& b) {
  const auto begin = [](const Array& array) { return reinterpret_cast<uintptr_t>(array.data); };
  const auto end = [&](const Array& array) { return begin(array) + array.type.bytes(); };
  return begin(a) < end(b) && begin(b) < end(a);
}

std::vector<TensorType> types_of(std::span<const Array> arrays) {
  std::vector<TensorType> types;
  types.reserve(arrays.size());
  for (const Array& array : arrays) types.push_back(array.type);
  return types;
}

// A call: the op or its gradient, on these arrays.
struct Call {
  const Op& op;
  int32_t id;
  const graph::Attributes& attrs;
  const Array* cotangent = nullptr;  // nullptr: the op itself
  std::span<const Array> inputs, outputs;
  const std::vector<bool>* wanted = nullptr;
  std::span<const Array> gradients = {};
  Lookup* lookup = nullptr;

  template <class Visit>
  void for_each(Visit visit) const {
    if (cotangent != nullptr) visit(*cotangent);
    for (const Array& array : inputs) visit(array);
    for (const Array& array : outputs) visit(array);
    for (const Array& array : gradients) visit(array);
  }
  std::size_t externals() const {
    return (cotangent != nullptr ? 1 : 0) + inputs.size() + outputs.size() + gradients.size();
  }
  // The externals from this one on are written.
  std::size_t first_written() const {
    return cotangent != nullptr ? 1 + inputs.size() + outputs.size() : inputs.size();
  }

  Program program() const {
    if (cotangent == nullptr) return op_program(id, attrs, types_of(inputs), types_of(outputs));
    return gradient_program(id, attrs, cotangent->type, types_of(inputs), types_of(outputs), *wanted,
                            types_of(gradients));
  }

  void write_key(std::string& key, uint64_t staged) const {
    key.clear();
    append_value(key, id);
    append_value(key, staged);
    append_value(key, static_cast<uint8_t>(cotangent != nullptr));
    append_value(key, static_cast<uint8_t>(inputs.size()));
    append_value(key, static_cast<uint8_t>(outputs.size()));
    if (wanted != nullptr) {
      for (const bool one : *wanted) append_value(key, static_cast<uint8_t>(one));
    }
    append_bytes(key, attrs.data(), attrs.size());
    for_each([&](const Array& array) { append_type(key, array.type); });
  }
};

std::string options_key(const EngineOptions& o) {
  std::string key = o.backend;
  const auto add = [&key](const std::string& text) { key += '\0' + text; };
  add(std::to_string(o.device));
  add(std::to_string(o.threads));
  add(std::to_string(static_cast<int>(o.precision)));
  add(std::to_string((o.deterministic ? 1 : 0) + (o.alternatives ? 2 : 0)));
  for (const std::filesystem::path& path : o.plugins) add("p" + path.string());
  for (const std::string& kernel : o.kernels) add("k" + kernel);
  return key;
}

}  // namespace

class Engine::Impl {
 public:
  explicit Impl(const EngineOptions& options)
      : options_(options),
        backend_(plugins::PluginRegistry(options.plugins), options.backend,
                 {.device = options.device,
                  .threads = options.threads,
                  .precision = options.precision,
                  .deterministic = options.deterministic,
                  .streams = 1,
                  .subgraphs = false,
                  .alternatives = options.alternatives,
                  .kernels = options.kernels}),
        forks_(forks()) {}

  const EngineOptions& options() const { return options_; }
  execution::Backend& backend() { return backend_; }
  bool on_host() const { return std::string_view(backend_.info().memory_domain) == "host"; }

  void run(const Call& call, const CallerStream& caller, const Scratch& scratch) {
    const std::lock_guard lock(mutex_);
    Plan& plan = plan_for(call, caller.capturing);
    std::array<void*, kMostExternals> addresses{};
    const std::size_t count = write_addresses(call, plan, addresses);
    execution::CallerStream& stream = stream_of(caller.native);
    follow_last(plan, stream, caller.capturing);
    const Temporary temporary(*this, plan, stream, caller.capturing, scratch, call);
    plan.enqueue(std::span(addresses).first(count), temporary.data(), stream);
    if (!plan.concurrent() && !on_host() && !caller.capturing) stream.mark();
  }

  uint64_t scratch_bytes(const Call& call, bool capturing) {
    const std::lock_guard lock(mutex_);
    return plan_for(call, capturing).scratch_bytes();
  }

  std::vector<std::string> explain(const Call& call) {
    const std::lock_guard lock(mutex_);
    return plan_for(call, false).explanation();
  }

  void* take(uint64_t bytes, void* native) {
    const std::lock_guard lock(mutex_);
    require_own_process();
    return take_from(stream_of(native), bytes);
  }

  // Ends of Memory.
  void give(void* data, void* native) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(native);
    if (found != streams_.end()) found->second->pool().give(data);
  }
  void order(void* before, void* after) {
    const std::lock_guard lock(mutex_);
    if (on_host() || before == after) return;
    execution::CallerStream& first = stream_of(before);
    first.mark();
    stream_of(after).wait_for(first);
  }

  void copy(void* to, const void* from, uint64_t bytes, void* native) {
    const std::lock_guard lock(mutex_);
    require_own_process();
    stream_of(native).copy(to, from, bytes);
  }
  void synchronize(void* native) {
    const std::lock_guard lock(mutex_);
    require_own_process();
    stream_of(native).synchronize();
  }

  PoolStatistics pool_statistics() const {
    const std::lock_guard lock(mutex_);
    PoolStatistics total;
    for (const auto& [native, stream] : streams_) {
      const execution::PoolStatistics& one = stream->pool_statistics();
      total.requests += one.requests;
      total.hits += one.hits;
      total.used_bytes += one.used_bytes;
      total.held_bytes += one.held_bytes;
      total.peak_bytes += one.peak_bytes;
    }
    return total;
  }
  void trim() {
    const std::lock_guard lock(mutex_);
    for (const auto& [native, stream] : streams_) stream->pool().trim();
  }
  int64_t plans() const {
    const std::lock_guard lock(mutex_);
    return std::ssize(plans_);
  }

 private:
  // The temporary memory of a call: the caller's, or the pool's for as long as the kernels are enqueued. Later work on
  // the stream may then use it.
  class Temporary {
   public:
    Temporary(Impl& engine, const Plan& plan, execution::CallerStream& stream, bool capturing, const Scratch& scratch,
              const Call& call)
        : stream_(stream) {
      const uint64_t bytes = plan.scratch_bytes();
      if (bytes == 0) return;
      if (scratch.data != nullptr) {
        const uint64_t alignment = engine.backend_.info().alignment;
        if (scratch.bytes < bytes || reinterpret_cast<uintptr_t>(scratch.data) % alignment != 0) {
          throw Error(call.op.description().name + ": needs " + human_bytes(bytes) +
                          " of temporary memory aligned to " + std::to_string(alignment) + " bytes, was given " +
                          human_bytes(scratch.bytes),
                      ExitCode::usage);
        }
        data_ = scratch.data;
        return;
      }
      if (capturing) {
        throw Error(call.op.description().name + ": while the stream is captured, its " + human_bytes(bytes) +
                        " of temporary memory must come from the caller, since the graph keeps using it",
                    ExitCode::usage);
      }
      data_ = engine.take_from(stream, bytes);
      pooled_ = true;
    }
    ~Temporary() {
      if (pooled_) stream_.pool().give(data_);
    }
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;
    void* data() const { return data_; }

   private:
    execution::CallerStream& stream_;
    void* data_ = nullptr;
    bool pooled_ = false;
  };

  void require_own_process() const {
    if (forks() == forks_) return;
    throw Error("backend '" + backend_.name() +
                "' was opened before this process was forked, and a driver or a thread team does not survive that; "
                "start processes by 'spawn', or first use gpunn in the child");
  }

  execution::CallerStream& stream_of(void* native) {
    if (on_host()) native = nullptr;
    auto& kept = streams_[native];
    if (kept == nullptr) kept = std::make_unique<execution::CallerStream>(backend_, native);
    return *kept;
  }

  void* take_from(execution::CallerStream& stream, uint64_t bytes) {
    void* data = stream.pool().take(bytes);
    if (data == nullptr) {
      for (const auto& [native, other] : streams_) other->pool().trim();
      data = stream.pool().take(bytes);
    }
    if (data != nullptr) return data;
    throw execution::OutOfMemory("the device has no " + human_bytes(bytes) + " of memory left");
  }

  // Kernels of a plugin that says nothing of several streams share scratch memory: they run one after another.
  void follow_last(const Plan& plan, execution::CallerStream& stream, bool capturing) {
    if (plan.concurrent() || on_host()) return;
    // The caller of a capture has waited for all earlier work.
    if (last_ != nullptr && last_ != &stream && !capturing) stream.wait_for(*last_);
    if (!capturing) last_ = &stream;
  }

  Plan& plan_for(const Call& call, bool capturing) {
    require_own_process();
    if (call.externals() > kMostExternals) throw Error("an op takes at most 64 arrays");
    auto* plan = call.lookup != nullptr ? static_cast<Plan*>(call.lookup->plan) : nullptr;
    if (plan == nullptr) plan = &find_or_make(call, 0, capturing);
    if (call.lookup != nullptr) call.lookup->plan = plan;
    const uint64_t staged = staged_externals(call, *plan);
    if (staged != 0) plan = &find_or_make(call, staged, capturing);
    return *plan;
  }

  Plan& find_or_make(const Call& call, uint64_t staged, bool capturing) {
    call.write_key(key_, staged);
    if (const auto found = plans_.find(key_); found != plans_.end()) return *found->second;
    if (capturing) {
      throw Error(call.op.description().name +
                      ": its kernels for these shapes are not prepared yet, which a captured stream forbids; run the "
                      "same call once before the capture",
                  ExitCode::usage);
    }
    auto made = std::make_unique<Plan>(backend_, call.program(), staged);
    // Alternatives are timed when an op is first met.
    if (backend_.kernel_times() != nullptr && execution::measure_alternatives(backend_)) {
      made = std::make_unique<Plan>(backend_, call.program(), staged);
    }
    return *plans_.emplace(key_, std::move(made)).first->second;
  }

  // Arrays that kernels cannot use where they lie: they are not aligned, or a result would lie in the memory of what a
  // kernel still reads.
  uint64_t staged_externals(const Call& call, const Plan& plan) const {
    uint64_t staged = 0;
    std::size_t i = 0;
    call.for_each([&](const Array& array) {
      const uint64_t alignment = std::max<uint64_t>(plan.alignments()[i], size_of(array.type.dtype));
      if (reinterpret_cast<uintptr_t>(array.data) % alignment != 0) staged |= uint64_t{1} << i;
      ++i;
    });
    const std::span<const Array> written = call.cotangent != nullptr ? call.gradients : call.outputs;
    for (std::size_t w = 0; w < written.size(); ++w) {
      if (collides(call, plan, written, w)) staged |= uint64_t{1} << (call.first_written() + w);
    }
    return staged;
  }

  static bool collides(const Call& call, const Plan& plan, std::span<const Array> written, std::size_t which) {
    const Array& output = written[which];
    if (output.data == nullptr) return false;
    for (std::size_t w = 0; w < which; ++w) {
      if (overlap(output, written[w])) {
        throw Error(call.op.description().name + ": two of its results lie in the same memory", ExitCode::usage);
      }
    }
    std::size_t i = 0;
    bool result = false;
    call.for_each([&](const Array& array) {
      const std::size_t external = i++;
      if (external >= call.first_written() || result || array.data == nullptr || !plan.uses(external)) return;
      if (!overlap(output, array)) return;
      const bool same = array.data == output.data && array.type == output.type;
      result = !(same && plan.single() && call.cotangent == nullptr && may_alias(call, which, external));
    });
    return result;
  }

  // Whether the op's row lets output `which` of those that are not in place lie in the memory of the input.
  static bool may_alias(const Call& call, std::size_t which, std::size_t input) {
    for (const TensorInfo& output : call.op.description().outputs) {
      if (output.in_place >= 0) continue;
      if (which-- == 0) return std::ranges::count(output.may_alias, static_cast<int>(input)) != 0;
    }
    return false;
  }

  std::size_t write_addresses(const Call& call, const Plan& plan, std::array<void*, kMostExternals>& addresses) const {
    std::size_t i = 0;
    call.for_each([&](const Array& array) {
      void* data = array.data;
      if (data == nullptr && plan.uses(i)) {
        if (array.type.bytes() > 0) {
          throw Error(call.op.description().name + ": array " + std::to_string(i) + ", " + to_string(array.type) +
                          ", is needed and has no address",
                      ExitCode::usage);
        }
        data = &of_empty;
      }
      addresses[i++] = data;
    });
    return i;
  }

  EngineOptions options_;
  execution::Backend backend_;
  int forks_;                 // at the time it was opened
  mutable std::mutex mutex_;  // the contract wants calls on one device one after another
  std::map<void*, std::unique_ptr<execution::CallerStream>> streams_;  // by native handle
  std::unordered_map<std::string, std::unique_ptr<Plan>> plans_;
  std::string key_;                          // of the call at hand; keeps its memory
  execution::CallerStream* last_ = nullptr;  // on which a kernel ran that must not run beside another
};

Engine Engine::open(const EngineOptions& options) {
  static std::mutex mutex;
  static auto& engines = *new std::map<std::string, std::shared_ptr<Impl>>();  // open until the process ends
  const std::lock_guard lock(mutex);
  auto& kept = engines[options_key(options)];
  if (kept == nullptr) kept = std::make_shared<Impl>(options);
  return Engine(kept);
}

std::string Engine::name() const { return impl_->backend().name(); }
std::vector<std::string> Engine::chain() const { return impl_->backend().chain(); }
std::string Engine::device() const { return impl_->backend().info().name; }
std::string Engine::memory_domain() const { return impl_->backend().info().memory_domain; }
bool Engine::on_host() const { return impl_->on_host(); }
uint64_t Engine::alignment() const { return impl_->backend().info().alignment; }
const EngineOptions& Engine::options() const { return impl_->options(); }

void Engine::run(const Op& op, std::span<const Array> inputs, std::span<const Array> outputs,
                 const CallerStream& stream, const Scratch& scratch, Lookup* lookup) const {
  impl_->run({.op = op,
              .id = op.impl_->info->id,
              .attrs = op.impl_->attrs,
              .inputs = inputs,
              .outputs = outputs,
              .lookup = lookup},
             stream, scratch);
}

void Engine::run_gradient(const Op& op, const Array& cotangent, std::span<const Array> inputs,
                          std::span<const Array> outputs, const std::vector<bool>& wanted,
                          std::span<const Array> gradients, const CallerStream& stream, const Scratch& scratch,
                          Lookup* lookup) const {
  impl_->run({.op = op,
              .id = op.impl_->info->id,
              .attrs = op.impl_->attrs,
              .cotangent = &cotangent,
              .inputs = inputs,
              .outputs = outputs,
              .wanted = &wanted,
              .gradients = gradients,
              .lookup = lookup},
             stream, scratch);
}

uint64_t Engine::scratch_bytes(const Op& op, std::span<const Array> inputs, std::span<const Array> outputs,
                               bool capturing, Lookup* lookup) const {
  return impl_->scratch_bytes({.op = op,
                               .id = op.impl_->info->id,
                               .attrs = op.impl_->attrs,
                               .inputs = inputs,
                               .outputs = outputs,
                               .lookup = lookup},
                              capturing);
}

uint64_t Engine::gradient_scratch_bytes(const Op& op, const Array& cotangent, std::span<const Array> inputs,
                                        std::span<const Array> outputs, const std::vector<bool>& wanted,
                                        std::span<const Array> gradients, bool capturing, Lookup* lookup) const {
  return impl_->scratch_bytes({.op = op,
                               .id = op.impl_->info->id,
                               .attrs = op.impl_->attrs,
                               .cotangent = &cotangent,
                               .inputs = inputs,
                               .outputs = outputs,
                               .wanted = &wanted,
                               .gradients = gradients,
                               .lookup = lookup},
                              capturing);
}

std::vector<std::string> Engine::explain(const Op& op, std::span<const Array> inputs,
                                         std::span<const Array> outputs) const {
  return impl_->explain(
      {.op = op, .id = op.impl_->info->id, .attrs = op.impl_->attrs, .inputs = inputs, .outputs = outputs});
}

void Engine::copy(void* to, const void* from, uint64_t bytes, const CallerStream& stream) const {
  impl_->copy(to, from, bytes, stream.native);
}
void Engine::synchronize(const CallerStream& stream) const { impl_->synchronize(stream.native); }
PoolStatistics Engine::pool_statistics() const { return impl_->pool_statistics(); }
void Engine::trim_pool() const { impl_->trim(); }
int64_t Engine::plans() const { return impl_->plans(); }

// --- Memory ---

struct Memory::Owner {
  std::shared_ptr<Engine::Impl> engine;
  void* native = nullptr;
};

Memory Engine::allocate(uint64_t bytes, const CallerStream& stream) const {
  Memory memory;
  memory.owner_ = std::make_shared<Memory::Owner>(Memory::Owner{impl_, impl_->on_host() ? nullptr : stream.native});
  memory.data_ = impl_->take(bytes, stream.native);
  memory.bytes_ = bytes;
  return memory;
}

Memory::Memory(Memory&& other) noexcept
    : owner_(std::move(other.owner_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(owner_, other.owner_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Memory::~Memory() {
  if (data_ != nullptr) owner_->engine->give(data_, owner_->native);
}

void Memory::hand_to(void* reader) const { owner_->engine->order(owner_->native, reader); }
void Memory::released_by(void* reader) const { owner_->engine->order(reader, owner_->native); }

}  // namespace gpunn::eager
