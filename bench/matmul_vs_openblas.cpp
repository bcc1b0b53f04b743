// The matrix product of the CPU backend beside OpenBLAS's: same process, same threads, same random data, calls
// interleaved, medians. Built where OpenBLAS's cblas.h is found; needs nothing else of gpunn.
//
//   matmul_vs_openblas [threads]      default 1 and all
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <cblas.h>
#include <unistd.h>

#include "isa.hpp"
#include "products/gemm.hpp"
#include "threads/parallel.hpp"

// Of OpenBLAS, not of cblas.h where that is another library's.
extern "C" void openblas_set_num_threads(int threads);

namespace {

struct Case {
  const char* name;
  gpunn::cpu::GemmShape shape;
};

struct AlignedFloats {
  explicit AlignedFloats(std::size_t n) : storage(n + 16) {}
  float* data() {
    const auto at = reinterpret_cast<std::uintptr_t>(storage.data());
    return storage.data() + ((64 - at % 64) % 64) / sizeof(float);
  }
  std::vector<float> storage;
};

// The pause lets the other library's waiting threads fall asleep, the first call wakes its own. Without it two spinning
// teams would share the cores, and each measurement would be of the scheduler.
double seconds(const std::function<void()>& call, int repeats) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  call();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repeats;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void run_case(const Case& test, int threads) {
  const auto& [m, n, k, ta, tb] = test.shape;
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  AlignedFloats a(static_cast<std::size_t>(m * k));
  AlignedFloats b(static_cast<std::size_t>(k * n));
  AlignedFloats c(static_cast<std::size_t>(m * n));
  AlignedFloats reference(static_cast<std::size_t>(m * n));
  for (float& x : a.storage) x = uniform(generator);
  for (float& x : b.storage) x = uniform(generator);

  const gpunn::cpu::Gemm gemm(test.shape, threads);
  AlignedFloats workspace(gemm.workspace_bytes() / sizeof(float));
  const auto ours = [&] { gemm.run(a.data(), b.data(), c.data(), {}, workspace.data()); };
  const auto theirs = [&, m = m, n = n, k = k, ta = ta, tb = tb] {
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, static_cast<int>(m),
                static_cast<int>(n), static_cast<int>(k), 1.0F, a.data(), static_cast<int>(ta ? m : k), b.data(),
                static_cast<int>(tb ? k : n), 0.0F, reference.data(), static_cast<int>(n));
  };
  ours();
  theirs();
  double worst = 0;
  for (int64_t i = 0; i < m * n; ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(c.data()[i]) - reference.data()[i]));
  }
  const double flop = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const int repeats = std::clamp(static_cast<int>(2e8 / flop), 1, 500);
  const int rounds = flop > 5e9 ? 15 : 41;
  std::vector<double> our_times;
  std::vector<double> their_times;
  for (int round = 0; round < rounds; ++round) {
    our_times.push_back(seconds(ours, repeats));
    their_times.push_back(seconds(theirs, repeats));
  }
  const double our_time = median(our_times);
  const double their_time = median(their_times);
  std::printf("%-28s %5ld %5ld %5ld  %c%c %10.1f %10.1f %10.1f %7.2f   %.1e\n", test.name, static_cast<long>(m),
              static_cast<long>(n), static_cast<long>(k), ta ? 'T' : 'N', tb ? 'T' : 'N', our_time * 1e6,
              flop / our_time / 1e9, flop / their_time / 1e9, their_time / our_time, worst);
}

// OpenBLAS reads how long its idle threads spin (2^n cycles, 2^26 by default) when it is loaded, so the program starts
// itself again with the least.
void start_again_with_short_spins(char** argv) {
  if (std::getenv("OPENBLAS_THREAD_TIMEOUT") != nullptr) return;
  setenv("OPENBLAS_THREAD_TIMEOUT", "4", 1);
  execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  start_again_with_short_spins(argv);
  std::vector<int> threads{1, gpunn::cpu::thread_count()};
  if (argc > 1) threads = {std::max(std::atoi(argv[1]), 1)};
  const std::vector<Case> cases{
      {"square", {256, 256, 256, false, false}},
      {"square", {512, 512, 512, false, false}},
      {"square", {1024, 1024, 1024, false, false}},
      {"square", {1024, 1024, 1024, false, true}},
      {"square", {1024, 1024, 1024, true, false}},
      {"square", {1024, 1024, 1024, true, true}},
      {"square, odd", {1021, 1019, 1013, false, false}},
      {"square", {2048, 2048, 2048, false, false}},
      {"mlp hidden forward", {128, 128, 784, false, true}},
      {"mlp hidden weight gradient", {128, 784, 128, true, false}},
      {"mlp output forward", {128, 10, 128, false, true}},
      {"mlp output weight gradient", {10, 128, 128, true, false}},
      {"mlp output data gradient", {128, 128, 10, false, false}},
      {"lenet fc1 forward", {128, 120, 400, false, true}},
      {"lenet fc1 weight gradient", {120, 400, 128, true, false}},
      {"lenet fc1 data gradient", {128, 400, 120, false, false}},
      {"lenet fc2 forward", {128, 84, 120, false, true}},
      {"lenet fc2 weight gradient", {84, 120, 128, true, false}},
      {"lenet fc2 data gradient", {128, 120, 84, false, false}},
      {"lenet fc3 forward", {128, 10, 84, false, true}},
      {"lenet fc3 weight gradient", {10, 84, 128, true, false}},
      {"lenet fc3 data gradient", {128, 84, 10, false, false}},
      {"one image", {1, 128, 784, false, true}},
  };
  for (const int count : threads) {
    openblas_set_num_threads(count);
    std::printf("%d thread%s, %s\n%-28s %5s %5s %5s  %s %10s %10s %10s %7s   %s\n", count, count == 1 ? "" : "s",
                gpunn::cpu::isa_name(gpunn::cpu::active_isa()).c_str(), "", "m", "n", "k", "op", "gpunn us",
                "gpunn GF/s", "blas GF/s", "ratio", "difference");
    for (const Case& test : cases) run_case(test, count);
  }
  return 0;
}
