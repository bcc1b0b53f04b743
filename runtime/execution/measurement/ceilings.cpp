#include "execution/measurement/ceilings.hpp"

#include <gpunn/error.hpp>
#include <gpunn/ops.h>
#include <gpunn/random.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "execution/measurement/timed_work.hpp"
#include "execution/streams/event.hpp"

namespace gpunn::execution {

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// Larger than the caches of any device, so that memory is what is measured.
constexpr uint64_t kLargestCopy = 256 * kMiB;
constexpr int64_t kSmallestMatmul = 512, kLargestMatmul = 8192;
// A product that takes so long has long reached its rate.
constexpr double kLongEnough = 5e-3;
constexpr int kRepeats = 10;

// A share of the free memory that leaves room for other programs, or a modest size if the device does not tell.
uint64_t budget(const Backend& backend) {
  const uint64_t free = backend.info().free_bytes;
  return free == 0 ? 128 * kMiB : free / 4;
}

std::string of(const Backend& backend, const char* what, int level) {
  return std::string(what) + " of '" + backend.chain()[static_cast<std::size_t>(level)] + "'";
}

// Zeros, or one number everywhere, would have a GPU draw less power and run faster than it ever does.
void fill_random(Backend& backend, const Buffer& buffer) {
  std::vector<float> piece(std::min<uint64_t>(buffer.bytes(), kMiB) / sizeof(float));
  for (std::size_t i = 0; i < piece.size(); ++i) {
    piece[i] = 2 * gpunn_random_unit(gpunn_philox(1, 0, i / 4).word[i % 4]) - 1;
  }
  fill_with(backend, buffer.data(), buffer.bytes(), std::as_bytes(std::span(piece)));
}

void measure_copy(Backend& backend, Event& start, Event& stop, Ceilings& ceilings) {
  const uint64_t bytes = std::clamp(budget(backend) / 2 / kMiB * kMiB, kMiB, kLargestCopy);
  const Buffer from = backend.allocate(bytes), to = backend.allocate(bytes);
  for (const Buffer* buffer : {&from, &to}) backend.fill(buffer->data(), 0, bytes);
  ceilings.copied_bytes = bytes;
  const auto take = [&](double seconds, const std::string& by) {
    const double rate = 2 * static_cast<double>(bytes) / seconds;
    if (!(seconds > 0) || rate <= ceilings.bytes_per_second) return;
    ceilings.bytes_per_second = rate;
    ceilings.copy_by = by;
  };
  const auto copy = [&] { backend.copy(to.data(), from.data(), bytes); };
  copy();
  backend.synchronize();
  take(best_seconds(start, stop, kRepeats, copy), of(backend, "copy", static_cast<int>(backend.chain().size()) - 1));

  // Whether the device was still at it when the call came back: more often than not, as a busy machine may mislead
  // either way.
  constexpr int kTries = 5;
  int behind = 0;
  for (int i = 0; i < kTries; ++i) {
    double host = 0;
    const double device = best_seconds(start, stop, 1, [&] {
      const auto before = std::chrono::steady_clock::now();
      copy();
      host = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    });
    if (host < device / 2) ++behind;
  }
  ceilings.asynchronous = 2 * behind > kTries;

  // The op of that name may be better at it, as where a host backend copies with all its threads.
  const TensorType type{DType::f32, Shape(1, static_cast<int64_t>(bytes / sizeof(float)))};
  const std::vector<TensorType> types(1, type);  // GCC 13 warns of {type} where there is nothing to warn of
  const graph::OpSignature signature{GPUNN_OP_COPY, {}, types, types};
  const Placement placement = backend.place(signature);
  if (placement.level < 0) return;
  Kernel kernel = backend.create(signature, placement);
  const Buffer workspace = backend.allocate(placement.workspace_bytes);
  const gpunn_tensor x = abi_tensor(type, from.data()), y = abi_tensor(type, to.data());
  const auto run = [&] { kernel.enqueue({&x, 1}, {&y, 1}, workspace.data(), "COPY"); };
  run();
  take(best_seconds(start, stop, kRepeats, run), of(backend, "COPY", placement.level));
}

void measure_matmul(Backend& backend, Event& start, Event& stop, Ceilings& ceilings) {
  for (int64_t n = kSmallestMatmul; n <= kLargestMatmul; n *= 2) {
    const TensorType type{DType::f32, {n, n}};
    if (3 * type.bytes() > budget(backend)) return;
    const graph::OpSignature signature{
        GPUNN_OP_MATMUL, graph::Attributes::of(gpunn_matmul_attrs{}), {type, type}, {type}};
    const Placement placement = backend.place(signature);
    if (placement.level < 0) return;
    Kernel kernel = backend.create(signature, placement);
    const Buffer a = backend.allocate(type.bytes()), b = backend.allocate(type.bytes()),
                 y = backend.allocate(type.bytes()), workspace = backend.allocate(placement.workspace_bytes);
    for (const Buffer* buffer : {&a, &b}) fill_random(backend, *buffer);
    const gpunn_tensor inputs[] = {abi_tensor(type, a.data()), abi_tensor(type, b.data())};
    const gpunn_tensor output = abi_tensor(type, y.data());
    const auto run = [&] { kernel.enqueue(inputs, {&output, 1}, workspace.data(), "MATMUL"); };
    run();
    const double once = best_seconds(start, stop, 1, run);
    const bool last = once >= kLongEnough || n == kLargestMatmul;
    const double seconds = last ? best_seconds(start, stop, kRepeats, run) : once;
    const auto side = static_cast<double>(n);
    const double rate = 2 * side * side * side / seconds;
    if (seconds > 0 && rate > ceilings.flops_per_second) {
      ceilings.flops_per_second = rate;
      ceilings.matmul_size = n;
      ceilings.matmul_by = of(backend, "MATMUL", placement.level);
    }
    if (last) return;
  }
}

// While an OwnChoice lives, the backend takes its own kernels: a kernel that the user asked for by name may be slow,
// and would give a low ceiling.
class OwnChoice {
 public:
  explicit OwnChoice(Backend& backend) : backend_(backend), wanted_(backend.options().kernels) {
    backend_.want_kernels({});
  }
  ~OwnChoice() { backend_.want_kernels(std::move(wanted_)); }
  OwnChoice(const OwnChoice&) = delete;
  OwnChoice& operator=(const OwnChoice&) = delete;

 private:
  Backend& backend_;
  std::vector<std::string> wanted_;
};

}  // namespace

double Ceilings::seconds_at_best(double flops, double bytes) const {
  const double computing = flops_per_second > 0 ? flops / flops_per_second : 0;
  const double moving = bytes_per_second > 0 ? bytes / bytes_per_second : 0;
  return std::max(computing, moving);
}

bool Ceilings::bound_by_flops(double flops, double bytes) const {
  return flops_per_second > 0 && (bytes_per_second <= 0 || flops / flops_per_second > bytes / bytes_per_second);
}

Ceilings measure_ceilings(Backend& backend) {
  Ceilings ceilings;
  Event start = backend.make_event(), stop = backend.make_event();
  const OwnChoice choice(backend);
  measure_copy(backend, start, stop, ceilings);
  measure_matmul(backend, start, stop, ceilings);
  return ceilings;
}

}  // namespace gpunn::execution
