// How fast the training batches of a data set are made on the host, without a device.
#include <gpunn/bench.hpp>
#include <gpunn/error.hpp>

#include <chrono>
#include <limits>
#include <thread>

#include "feed/batch_fill.hpp"
#include "feed/data_feed.hpp"
#include "program/augmentation.hpp"
#include "program/programs.hpp"

namespace gpunn {

namespace {

constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();

}  // namespace

LoaderBench bench_loader(const Experiment& experiment, double seconds) {
  const training::DataFeed feed(experiment, load_dataset(experiment.data), {});
  const training::SplitType& type = feed.train();
  const int64_t batch = training::training_sampling(experiment, type).width();
  const training::BatchFill fill = feed.training_fill(kEndless);
  const training::OwnBatchRoom room(type, batch);
  LoaderBench bench{.source = feed.dataset().source, .threads = std::thread::hardware_concurrency()};
  fill(0, room.room());  // files come into the system's memory, pages into the process
  const auto start = std::chrono::steady_clock::now();
  for (int64_t step = 1; bench.seconds < seconds; ++step) {
    bench.samples += fill(step, room.room()).count;
    bench.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return bench;
}

}  // namespace gpunn
