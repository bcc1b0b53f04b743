#include <gpunn/error.hpp>
#include <gpunn/progress.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "execution/backend_impl.hpp"
#include "execution/measurement/kernel_times.hpp"
#include "execution/measurement/timed_work.hpp"
#include "execution/op_text.hpp"
#include "ops/op.hpp"

namespace gpunn::execution {

namespace {

constexpr uint64_t kPatternBytes = uint64_t{1} << 20;
constexpr double kSampleSeconds = 0.5e-3;
constexpr double kMostRunsOfSample = 10;
constexpr int kSamples = 3;

// The other layout of the op's images.
graph::OpSignature turned(graph::OpSignature signature) {
  for (auto* types : {&signature.inputs, &signature.outputs}) {
    for (TensorType& type : *types) {
      if (has_layouts(type)) type.layout = type.layout == Layout::packed ? Layout::channels_last : Layout::packed;
    }
  }
  return signature;
}

// A copy between two layouts is what another layout costs.
bool turns_layout(const graph::OpSignature& signature) {
  return signature.op == GPUNN_OP_COPY && signature.inputs[0].layout != signature.outputs[0].layout;
}

// Random numbers between 1/32 and 1 with random signs, in any floating dtype. Zeros would run faster than real data.
std::vector<std::byte> pattern_of(DType dtype) {
  std::vector<std::byte> bytes(kPatternBytes);
  const int exponent_bits = dtype == DType::f16 ? 5 : 8;
  const std::size_t size = dtype == DType::f32 ? 4 : 2;
  const int mantissa_bits = static_cast<int>(size) * 8 - 1 - exponent_bits;
  const uint32_t largest = (1U << static_cast<unsigned>(exponent_bits - 1)) - 2;  // of [0.5, 1)
  uint64_t state = 88172645463325252ULL;                                          // xorshift64 (Marsaglia, 2003)
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    state ^= state << 13U;
    state ^= state >> 7U;
    state ^= state << 17U;
    const auto random = static_cast<uint32_t>(state >> 24U);
    const uint32_t mantissa = random & ((1U << static_cast<unsigned>(mantissa_bits)) - 1);
    const uint32_t exponent = largest - static_cast<uint32_t>(state % 5);
    const uint32_t sign = static_cast<uint32_t>(state >> 60U) & 1U;
    const uint32_t bits =
        sign << static_cast<unsigned>(size * 8 - 1) | exponent << static_cast<unsigned>(mantissa_bits) | mantissa;
    std::memcpy(bytes.data() + i, &bits, size);
  }
  return bytes;
}

// An op's tensors in memory of their own, its inputs random.
class Trial {
 public:
  Trial(Backend& backend, const graph::OpSignature& signature)
      : backend_(backend), signature_(signature), start_(backend.make_event()), stop_(backend.make_event()) {
    for (const TensorType& type : signature.inputs) {
      inputs_.push_back(placed(type));
      fill(type, inputs_.back().data);
    }
    const std::vector<int>& in_place = ops::op_info(signature.op).in_place;
    for (std::size_t i = 0; i < signature.outputs.size(); ++i) {
      const int input = i < in_place.size() ? in_place[i] : -1;
      outputs_.push_back(input < 0 ? placed(signature.outputs[i]) : inputs_[static_cast<std::size_t>(input)]);
    }
  }

  double seconds(const Placement& placement) {
    Kernel kernel = backend_.create(signature_, placement);
    const Buffer workspace = backend_.allocate(placement.workspace_bytes);
    const std::string what = op_name(signature_.op);
    const auto run = [&] { kernel.enqueue(inputs_, outputs_, workspace.data(), what); };
    run();
    const double once = std::max(best_seconds(start_, stop_, 1, run), 1e-7);
    const int runs = static_cast<int>(std::clamp(kSampleSeconds / once, 1.0, kMostRunsOfSample));
    const auto run_all = [&] {
      for (int i = 0; i < runs; ++i) run();
    };
    // Enqueued one by one, small kernels would be timed by how fast the host gives them out.
    const bool captures = backend_.can_capture(placement.level) && (placement.flags & GPUNN_OP_CAPTURABLE) != 0;
    const auto graph = captures ? capture(backend_, run_all) : nullptr;
    const auto sample = [&] { graph != nullptr ? graph->launch() : run_all(); };
    sample();
    return best_seconds(start_, stop_, kSamples, sample) / runs;
  }

 private:
  gpunn_tensor placed(const TensorType& type) {
    memory_.push_back(backend_.allocate(type.bytes()));
    return abi_tensor(type, memory_.back().data());
  }

  void fill(const TensorType& type, void* data) { fill_with(backend_, data, type.bytes(), pattern_of(type.dtype)); }

  Backend& backend_;
  const graph::OpSignature& signature_;
  Event start_, stop_;
  std::vector<Buffer> memory_;
  std::vector<gpunn_tensor> inputs_, outputs_;
};

}  // namespace

bool measure_alternatives(Backend& backend) {
  KernelTimes* const times = backend.kernel_times();
  if (times == nullptr) return false;
  struct Question {
    std::string key;
    graph::OpSignature signature;
    std::vector<Placement> servers;
  };
  std::vector<Question> questions;
  for (auto& [key, signature] : times->take_asked()) {
    const auto floating = [](const TensorType& type) { return is_floating(type.dtype); };
    if (!std::ranges::all_of(signature.inputs, floating) || !std::ranges::all_of(signature.outputs, floating)) continue;
    std::vector<Placement> servers = backend.alternatives(signature);
    // An op that has alternatives in one layout is timed in the other too, to compare the layouts.
    if (servers.empty()) continue;
    if (servers.size() < 2 && backend.alternatives(turned(signature)).size() < 2 && !turns_layout(signature)) continue;
    questions.push_back({key, std::move(signature), std::move(servers)});
  }
  if (questions.empty()) return false;
  LongWork work("planning: timing the kernels of alternatives", questions.size());
  for (std::size_t i = 0; i < questions.size(); ++i) {
    work.reach(i);
    const Question& question = questions[i];
    try {
      Trial trial(backend, question.signature);
      for (const Placement& server : question.servers) {
        double seconds = std::numeric_limits<double>::infinity();
        try {
          seconds = trial.seconds(server);
        } catch (const OutOfMemory&) {
          throw;
        } catch (const Error&) {  // NOLINT(bugprone-empty-catch): another alternative may run
        }
        times->set(question.key, server.level, seconds);
      }
    } catch (const OutOfMemory&) {  // NOLINT(bugprone-empty-catch): not timed, the highest plugin runs it
    }
  }
  backend.synchronize();
  times->save();
  return true;
}

}  // namespace gpunn::execution
