// Runs one op of the CPU backend on host tensors, with a guard around every tensor and around the workspace.
#pragma once

#include <gpunn/float_formats.hpp>
#include <gpunn/plugin.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "isa.hpp"
#include "threads/parallel.hpp"

namespace cpu_test {

using Shape = std::vector<int64_t>;
namespace plugin = gpunn::plugin;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <class T>
constexpr int32_t dtype_of() {
  if constexpr (std::is_same_v<T, float>) return GPUNN_F32;
  if constexpr (std::is_same_v<T, double>) return GPUNN_F64;
  if constexpr (std::is_same_v<T, int32_t>) return GPUNN_I32;
  if constexpr (std::is_same_v<T, int64_t>) return GPUNN_I64;
  if constexpr (std::is_same_v<T, uint8_t>) return GPUNN_U8;
  if constexpr (std::is_same_v<T, gpunn::BFloat16>) return GPUNN_BF16;
  if constexpr (std::is_same_v<T, gpunn::Half>) return GPUNN_F16;
}

inline int64_t count_of(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return count;
}

// Aligned memory of a size, filled with a pattern (NaN as f32, odd as an integer) and between two guards.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes)
      : bytes_(bytes),
        memory_(bytes + 3 * kGuard, kPattern),
        begin_((kAlign - reinterpret_cast<uintptr_t>(memory_.data()) % kAlign) % kAlign + kGuard) {}
  Guarded(const Guarded& other) : Guarded(other.bytes_) {
    if (bytes_ != 0) std::memcpy(data(), other.data(), bytes_);
  }
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() = default;

  unsigned char* data() { return memory_.data() + begin_; }
  const unsigned char* data() const { return memory_.data() + begin_; }
  std::size_t size() const { return bytes_; }
  bool intact() const {
    const auto untouched = [](unsigned char byte) { return byte == kPattern; };
    return std::all_of(memory_.begin(), memory_.begin() + static_cast<std::ptrdiff_t>(begin_), untouched) &&
           std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(begin_ + bytes_), memory_.end(), untouched);
  }

 private:
  static constexpr std::size_t kAlign = 64;
  static constexpr std::size_t kGuard = 128;
  static constexpr unsigned char kPattern = 0xFF;
  std::size_t bytes_;
  std::vector<unsigned char> memory_;
  std::size_t begin_;
};

// A packed tensor, or a view of one with strides of its own (for descriptions).
template <class T>
class Tensor {
 public:
  explicit Tensor(Shape shape) : shape_(std::move(shape)), memory_(sizeof(T) * static_cast<std::size_t>(size())) {}
  Tensor(Shape shape, const std::vector<T>& values) : Tensor(std::move(shape)) {
    REQUIRE(static_cast<int64_t>(values.size()) == size());
    std::copy(values.begin(), values.end(), data());
  }

  int64_t size() const { return count_of(shape_); }
  const Shape& shape() const { return shape_; }
  T* data() { return reinterpret_cast<T*>(memory_.data()); }
  const T* data() const { return reinterpret_cast<const T*>(memory_.data()); }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size(); }
  std::vector<T> values() const { return {data(), data() + size()}; }
  bool intact() const { return memory_.intact(); }

 private:
  Shape shape_;
  Guarded memory_;
};

// A tensor of any type, as the ABI sees it.
struct View {
  template <class T>
  View(Tensor<T>& tensor)  // NOLINT(google-explicit-constructor): op lists read better
      : View(dtype_of<T>(), tensor.shape(), tensor.data()) {}
  template <class T>
  View(const Tensor<T>& tensor) : View(const_cast<Tensor<T>&>(tensor)) {}  // NOLINT(google-explicit-constructor)
  View(int32_t dtype, const Shape& shape, void* data = nullptr) {
    raw.struct_size = sizeof(raw);
    raw.dtype = dtype;
    raw.rank = static_cast<int32_t>(shape.size());
    raw.data = data;
    int64_t stride = 1;
    for (int32_t i = raw.rank - 1; i >= 0; --i) {
      const auto k = static_cast<std::size_t>(i);
      raw.dim[i] = shape[k];
      raw.stride[i] = stride;
      // Wrapping, since some descriptions are too large on purpose.
      stride = static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(shape[k]));
    }
  }
  View strided(const Shape& strides) const {
    View view = *this;
    std::copy(strides.begin(), strides.end(), view.raw.stride);
    return view;
  }
  gpunn_tensor raw{};
};

using Views = std::vector<View>;

// A tensor [N, C, H, W], and its elements in another tensor with the channels last; and back.
inline View channels_last(const Tensor<float>& tensor) {
  const Shape& s = tensor.shape();
  return View(tensor).strided({s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]});
}
inline Tensor<float> with_channels_last(const Tensor<float>& x, bool back = false) {
  const Shape& s = x.shape();
  Tensor<float> turned(s);
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t pixel = i % (s[2] * s[3]);
    const int64_t channel = i / (s[2] * s[3]) % s[1];
    const int64_t at = (i / (s[1] * s[2] * s[3]) * s[2] * s[3] + pixel) * s[1] + channel;
    back ? turned[i] = x[at] : turned[at] = x[i];
  }
  return turned;
}

// An op's description or arguments over views that outlive it.
class Bound {
 public:
  Bound(int32_t op, const void* attrs, const Views& inputs, const Views& outputs, const char* kernel = nullptr) {
    desc_.kernel = kernel;
    for (const View& view : inputs) inputs_.push_back(&view.raw);
    for (const View& view : outputs) outputs_.push_back(&view.raw);
    desc_.struct_size = sizeof(desc_);
    desc_.op = op;
    desc_.attrs = attrs;
    desc_.n_inputs = static_cast<uint32_t>(inputs.size());
    desc_.n_outputs = static_cast<uint32_t>(outputs.size());
    desc_.inputs = inputs_.data();
    desc_.outputs = outputs_.data();
    args_.struct_size = sizeof(args_);
    args_.n_inputs = desc_.n_inputs;
    args_.n_outputs = desc_.n_outputs;
    args_.inputs = inputs_.data();
    args_.outputs = outputs_.data();
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  plugin::OpDesc desc() const { return plugin::OpDesc(desc_); }
  gpunn_op_args& args() { return args_; }

 private:
  std::vector<const gpunn_tensor*> inputs_;
  std::vector<const gpunn_tensor*> outputs_;
  gpunn_op_desc desc_{};
  gpunn_op_args args_{};
};

// A device of some op families: add_softmax_kernels and so on.
class Runner {
 public:
  explicit Runner(void (*family)(plugin::Device&)) { family(device_); }

  // Why the op is not served; empty where it is.
  std::string refusal(int32_t op, const void* attrs, const Views& inputs, const Views& outputs) const {
    const Bound bound(op, attrs, inputs, outputs);
    const auto choice = device_.choose(bound.desc());
    return choice.factory != nullptr ? std::string() : choice.support.reason;
  }

  // The names of the kernels that serve the op.
  std::vector<std::string> kernels(int32_t op, const void* attrs, const Views& inputs, const Views& outputs) const {
    const Bound bound(op, attrs, inputs, outputs);
    std::vector<std::string> names;
    std::istringstream list(device_.kernels(bound.desc()));
    for (std::string name; std::getline(list, name, ',');) names.push_back(name);
    return names;
  }

  // By the kernel of that name, or by the device's choice.
  void run(int32_t op, const void* attrs, const Views& inputs, const Views& outputs,
           const std::string& kernel = {}) const {
    Bound bound(op, attrs, inputs, outputs, kernel.c_str());
    const auto choice = device_.choose(bound.desc());
    INFO("op " << op << ": " << choice.support.reason);
    REQUIRE(choice.factory != nullptr);
    Guarded workspace(choice.support.workspace_bytes);
    bound.args().workspace = workspace.data();
    bound.args().workspace_bytes = workspace.size();
    plugin::HostStream stream;
    choice.factory->create(bound.desc())->enqueue(stream, plugin::OpArgs(bound.args()));
    CHECK(workspace.intact());
  }

 private:
  plugin::HostDevice device_;
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  float number(float low = -1.0F, float high = 1.0F) {
    return std::uniform_real_distribution<float>(low, high)(engine_);
  }
  int64_t integer(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }

  Tensor<float> tensor(Shape shape, float low = -1.0F, float high = 1.0F) {
    Tensor<float> made(std::move(shape));
    for (float& value : made) value = number(low, high);
    return made;
  }
  // Of few different values, so that equal ones are common.
  Tensor<float> coarse(Shape shape) {
    Tensor<float> made(std::move(shape));
    for (float& value : made) value = static_cast<float>(integer(-2, 2));
    return made;
  }

 private:
  std::mt19937 engine_;
};

template <class T>
bool same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  return a.shape() == b.shape() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(), sizeof(T) * static_cast<std::size_t>(a.size())) == 0);
}

// The largest |a - b| / (|b| + floor); infinity where only one of the two is NaN, or infinite values differ.
inline double worst_error(const Tensor<float>& a, const std::vector<double>& b, double floor = 1.0) {
  REQUIRE(a.size() == static_cast<int64_t>(b.size()));
  double worst = 0.0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double expected = b[static_cast<std::size_t>(i)];
    const auto found = static_cast<double>(a[i]);
    if (std::isnan(expected) && std::isnan(found)) continue;
    if (found == expected) continue;
    const double error = std::abs(found - expected) / (std::abs(expected) + floor);
    worst = std::isfinite(error) ? std::max(worst, error) : std::numeric_limits<double>::infinity();
  }
  return worst;
}

// Calls body() on each instruction set that this machine runs, with 1, 2 and 3 threads; CHECKs that `result` (a tensor
// that body() fills) has the same bits at any number of threads.
template <class T, class Body>
void on_each_machine(Tensor<T>& result, const Body& body) {
  const gpunn::cpu::Isa before = gpunn::cpu::active_isa();
  for (const gpunn::cpu::Isa isa : gpunn::cpu::usable_isas()) {
    INFO("instruction set " << gpunn::cpu::isa_name(isa));
    gpunn::cpu::set_active_isa(isa);
    gpunn::cpu::set_thread_count(1);
    body();
    const Tensor<T> alone(result);
    for (const int threads : {2, 3}) {
      gpunn::cpu::set_thread_count(threads);
      body();
      INFO(threads << " threads");
      CHECK(same_bits(result, alone));
      CHECK(result.intact());
    }
  }
  gpunn::cpu::set_thread_count(0);
  gpunn::cpu::set_active_isa(before);
}

// What stands in device memory and changes from step to step.
inline Tensor<int64_t> counter(int64_t value) { return {{}, {value}}; }

}  // namespace cpu_test
