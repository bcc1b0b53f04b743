// Measures how fast a folder of images is read: image_folder ROOT [TIMES]. It reads all files once before the first
// measurement, so that they come from the page cache, as in any but the first run of a training.
#include <gpunn/data.hpp>
#include <gpunn/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fputs("usage: image_folder ROOT [TIMES]\n", stderr);
    return 2;
  }
  gpunn::DataConfig config;
  config.dataset = "image_folder";
  config.path = argv[1];
  const int times = argc > 2 ? std::max(1, std::atoi(argv[2])) : 5;
  std::vector<double> rates;
  for (int i = 0; i <= times; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const gpunn::Dataset set = gpunn::load_dataset(config);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const auto images = static_cast<double>(set.train.rows() + set.test.rows());
    if (i > 0) rates.push_back(images / seconds);
    std::printf("%s%.0f images in %.3f s: %.0f images/s\n", i == 0 ? "warm-up: " : "", images, seconds,
                images / seconds);
  }
  std::sort(rates.begin(), rates.end());
  std::printf("median %.0f images/s\n", rates[rates.size() / 2]);
  return 0;
} catch (const gpunn::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.code());
}
