#include "serving/models/warm_up.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "serving/http/exchange.hpp"

namespace gpunn::serving {

namespace {

std::vector<int64_t> sizes_in_order(int64_t most) {
  std::vector<int64_t> sizes = {1, most};
  for (int64_t size = 2; size < most; size *= 2) sizes.push_back(size);
  for (int64_t size = 3; size < most; ++size) {
    if ((size & (size - 1)) != 0) sizes.push_back(size);
  }
  return sizes;
}

}  // namespace

void warm_up(const Model& model, int instances, std::chrono::milliseconds budget) {
  if (budget.count() == 0) return;
  const Clock::time_point end = Clock::now() + budget;
  const std::vector<int64_t> sizes = sizes_in_order(model.max_batch());
  std::size_t largest = 0;
  for (const ModelTensor& input : model.inputs()) largest = std::max(largest, input.row.bytes());
  const std::vector<std::byte> zeros(static_cast<std::size_t>(model.max_batch()) * largest);
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    try {
      for (const int64_t rows : sizes) {
        if (Clock::now() > end) return;
        std::vector<Shape> shapes;
        for (const ModelTensor& input : model.inputs()) shapes.push_back(batch_shape(input.row.shape, rows));
        std::vector<ArrayView> arrays;
        for (std::size_t i = 0; i < shapes.size(); ++i) {
          const ModelTensor& input = model.inputs()[i];
          arrays.push_back({.name = input.name, .dtype = input.row.dtype, .shape = shapes[i], .data = zeros.data()});
        }
        model.run(arrays, {});
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < instances; ++i) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace gpunn::serving
